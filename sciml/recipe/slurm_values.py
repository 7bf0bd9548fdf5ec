"""What Slurm's options may hold: times, memory, ranges of nodes, words and lines that cannot break a script."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Strict

from sciml.recipe.messages import failure, problem
from sciml.recipe.values import in_one_message

TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<hours>\d+):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)")
MEMORY = re.compile(r"\d+[KMGT]?")
NODES = re.compile(r"(?P<least>\d+)-(?P<most>\d+)")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _one_line(text: str) -> str:
    if "\n" in text or "\0" in text or not text.strip():
        raise failure([problem((), "must be one line of text", text)])
    return text.strip()


def _one_word(text: str) -> str:
    if len(text.split()) != 1:
        raise failure([problem((), "must be one word", text)])
    return text.strip()


def _option(text: str) -> str:
    """`--constraint=a100`, with or without the leading `#SBATCH`."""
    option = text.removeprefix("#SBATCH").strip()
    if not option.startswith("-"):
        raise failure([problem((), "must be an option of sbatch, such as --constraint=a100", text)])
    return option


def _duration(value: Any) -> Any:
    """Whole minutes, or a text that every Slurm reads in the same way."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return f"{value // 1440}-{value // 60 % 24:02}:{value % 60:02}:00" if value >= 1440 else clock(value)
    if isinstance(value, str) and TIME.fullmatch(value) and seconds(value):
        return value
    hint = " (Slurm takes 4:00 for four minutes)" if re.fullmatch(r"\d+:\d+", str(value)) else ""
    raise failure([problem((), f"must be hours:minutes:seconds, days-hours:minutes:seconds or minutes{hint}", value)])


def clock(minutes: int) -> str:
    """Minutes as `HH:MM:00`."""
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


def seconds(time: str) -> int:
    """Seconds of a checked time, `HH:MM:SS` or `D-HH:MM:SS`."""
    found = TIME.fullmatch(time)
    assert found is not None
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + rest


def _node_range(value: Any) -> Any:
    """A number of nodes, or `least-most` for a job that runs on what it gets."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return str(value)
    found = NODES.fullmatch(value.replace(" ", "")) if isinstance(value, str) else None
    if isinstance(value, str) and value.isdecimal() and int(value) > 0:
        return value
    if found is None or int(found["least"]) < 1:
        raise failure([problem((), "must be a number of nodes >= 1, or a range such as 1-4", value)])
    least, most = int(found["least"]), int(found["most"])
    if least > most:
        raise failure([problem((), f"the range is reversed: write {most}-{least}", value)])
    return f"{least}-{most}" if least < most else str(least)


def _memory(value: Any) -> Any:
    if isinstance(value, str) and MEMORY.fullmatch(value):
        return value
    raise failure([problem((), "must be a whole number and K, M, G or T, such as 64G", value)])


def _scalar(value: str | int | float) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return _one_line(text) if text else text


def _variables(values: dict[str, Any]) -> dict[str, Any]:
    wrong = [name for name in values if not VARIABLE.fullmatch(name)]
    if wrong:
        raise failure(problem((name,), "must be the name of a variable", name) for name in wrong)
    return values


Line = Annotated[str, Strict(), AfterValidator(_one_line)]
Word = Annotated[str, Strict(), AfterValidator(_one_word)]
Lines = Annotated[tuple[Line, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
Words = Annotated[tuple[Word, ...], BeforeValidator(lambda value: value.split() if isinstance(value, str) else value)]
Nodes = Annotated[str, BeforeValidator(_node_range, json_schema_input_type=int | str)]
Duration = Annotated[str, BeforeValidator(_duration, json_schema_input_type=int | str)]
Memory = Annotated[str, BeforeValidator(_memory)]
Scalar = Annotated[str | int | float, in_one_message("text or a number"), AfterValidator(_scalar)]
Variables = Annotated[dict[str, Scalar], AfterValidator(_variables)]
SbatchOptions = Annotated[
    tuple[Annotated[Line, AfterValidator(_option)], ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
]

"""Names that become files and folders, and files that must be there."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Strict, ValidationInfo

from sciml import registry
from sciml.recipe.messages import failure, problem

ADDRESS = "://"
LONGEST = 200
"""Bytes of a name; file systems allow 255, and `.sciml`, `.part` and the like are appended."""


def _file_name(text: str) -> str:
    """A name that stays inside its folder; spaces and any script are fine, control characters are not."""
    control = [letter for letter in text if unicodedata.category(letter) == "Cc"]
    if not text or text in (".", "..") or "/" in text or control:
        message = "must be usable as a file name: not empty, no '/', no control character, not '.' or '..'"
        raise failure([problem((), message, text)])
    if len(text.encode()) > LONGEST:
        raise failure([problem((), f"must be at most {LONGEST} bytes long", text)])
    return text


Name = Annotated[str, Strict(), AfterValidator(_file_name)]


def _without_dot(text: str) -> str:
    """Dots separate the keys of an override (`models.fno.width=64`)."""
    if "." in text:
        raise failure([problem((), "must not contain a dot", text)])
    return text


ModelName = Annotated[Name, AfterValidator(_without_dot)]


def _existing(value: Any, info: ValidationInfo) -> Any:
    """An absolute path; relative ones start at the folder of the recipe. Addresses are looked up when they are read."""
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise failure([problem((), "must be the path of a file", value)])
    if ADDRESS in value:
        return value
    path = Path((info.context or {}).get("folder", "."), value).expanduser().resolve()
    if not path.is_file():
        nearby = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        kind = "is a folder, not a file" if path.is_dir() else "no such file"
        raise failure([problem((), f"{kind}{registry.suggestion(path.name, nearby)}", str(path))])
    return path


ExistingFile = Annotated[Path | str, BeforeValidator(_existing)]

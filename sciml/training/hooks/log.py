"""Metrics as files: one JSON object per line, and TensorBoard."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from sciml.runfolder import explained, write_text
from sciml.training.hooks.base import Hook, Record

if TYPE_CHECKING:
    from sciml.training.loop import Run

METRICS = "metrics.jsonl"


@final
class MetricsFile(Hook):
    """Appends records to a file of JSON lines; a number that is not finite becomes null.

    Every `every`-th step is kept, and every evaluation. When a run is resumed, lines beyond the restored step (which
    will be done again) and a line cut by a crash are removed.
    """

    def __init__(self, path: Path | str, every: int = 1) -> None:
        self.path, self.every = Path(path), every
        self._file: Any = None

    def on_start(self, run: Run) -> None:
        """Keep what belongs to the steps already done."""
        kept = [r for r in read_metrics(self.path) if r["step"] <= run.step] if run.step else []
        write_text(self.path, "".join(_line(record) for record in kept))
        with explained(self.path):
            self._file = self.path.open("a", encoding="utf-8")

    def on_records(self, run: Run, records: list[Record]) -> None:
        """One line each, flushed together."""
        with explained(self.path):
            self._file.writelines(_line(r) for r in records if _kept(r, self.every, run.total))
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


@final
class TensorBoard(Hook):
    """Writes scalars for TensorBoard; a resumed run hides the steps that are done again."""

    def __init__(self, folder: Path | str, every: int = 10) -> None:
        self.folder, self.every = str(folder), every
        self._writer: Any = None

    def on_start(self, run: Run) -> None:
        """Open an event file."""
        from tensorboardX import SummaryWriter

        with explained(self.folder):
            self._writer = SummaryWriter(self.folder, purge_step=run.step + 1, flush_secs=10)

    def on_records(self, run: Run, records: list[Record]) -> None:
        """One point per number."""
        for record in records:
            if _kept(record, self.every, run.total):
                numbers = {name: v for name, v in record.items() if name != "step" and type(v) is not bool}
                for name, value in numbers.items():
                    self._writer.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()


def read_metrics(path: Path | str) -> list[Record]:
    """Records of a metrics file, up to the first line that a crash has cut; an absent file has none."""
    path = Path(path)
    records = []
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


def _kept(record: Record, every: int, total: int) -> bool:
    step = record["step"]
    return "finite" not in record or step % every == 0 or step in (1, total)


def _line(record: Record) -> str:
    plain = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in record.items()}
    return json.dumps(plain) + "\n"

"""What it costs to go on with fewer processes: recovery from a killed one of N, with all again or with the others.

    python benchmarks/soak/recovery.py [--processes 10] [--repeats 1]

The time runs from the notice of the death to the next step of the training. With the others, the batch of each is
worked through in more portions, which is another program to compile.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from soak import MODEL, PROGRAM, RECIPE

BATCH_PER_PROCESS = 18
STEPS = 1_000_000


def main() -> int:
    """Prints the two times and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    count = options.processes
    found: dict[str, list[float]] = {"all again": [], "the others": []}
    for _ in range(options.repeats):
        for name, rest in (("all again", 0.0), ("the others", 3600.0)):
            with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
                found[name].append(recovery(Path(folder), count, rest))
    for name, seconds in found.items():
        print(f"{name}: {', '.join(f'{s:.1f}' for s in seconds)} s")
    print(f"ratio {min(found['the others']) / min(found['all again']):.2f}")
    return 0


def recovery(folder: Path, count: int, rest: float) -> float:
    """Seconds from the notice that one of `count` processes is dead to the next step."""
    batch = BATCH_PER_PROCESS * count
    (folder / "soak.yaml").write_text(
        RECIPE.replace("train: 48", f"train: {batch}").replace("batch: 24", f"batch: {batch}")
    )
    changes = [f"models.{MODEL}.train.steps={STEPS}", f"models.{MODEL}.train.checkpoint_every=5"]
    run = ["soak.yaml", "-o", "run", *changes]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=1"}
    subprocess.run([*PROGRAM, "generate", *run], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    command = [*PROGRAM, "train", *run, "--supervise", str(count), "--rest", str(rest)]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    pids = _wait(folder, "under way", process)[0]["pids"]
    while not list(folder.glob(f"run/models/{MODEL}/checkpoints/[0-9]*")):
        time.sleep(0.1)
    os.kill(pids[-1], signal.SIGKILL)
    seconds = _wait(folder, "recovered", process)[-1]["seconds"]
    process.send_signal(signal.SIGTERM)
    process.wait()
    return float(seconds)


def _wait(folder: Path, event: str, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    path = folder / "run/supervisor.jsonl"
    while process.poll() is None:
        events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        found = [i for i, e in enumerate(events) if e["event"] == event]
        if found:
            return events[: found[0] + 1]
        time.sleep(0.1)
    raise SystemExit(f"the training ended with {process.returncode}")


if __name__ == "__main__":
    sys.exit(main())

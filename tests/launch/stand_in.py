"""Stands in for `sciml run FILE -o FOLDER` in a job: quick to start, and each of its tasks does as told.

STAND_IN (or `stand_in.txt` in the folder) says what its first life does: `end`, `fail` (exit 78), `again` (exit 75),
`wait` (until SIGTERM, then exit 75), `deaf` (until SIGTERM ends it), `die` (task 1 is killed, the others wait). A later
life ends well. Each task appends its doings to `story.txt`.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

REAL = "from sciml.cli import main; main()"
CODES = {"end": 0, "fail": 78, "again": 75}
ROW = {"name": "fno", "error": 0.25, "parameters": 7}


def say(folder, what):
    life, task = os.environ.get("SLURM_RESTART_COUNT", "0"), os.environ["SLURM_PROCID"]
    with (folder / "story.txt").open("a") as story:
        story.write(f"life {life} task {task} of {os.environ['SLURM_NTASKS']}: {what}\n")


def wait(folder):
    def stop(number, frame):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # srun -K sends it again when the first task has left
        say(folder, f"signal {number}")
        sys.exit(75)

    signal.signal(signal.SIGTERM, stop)
    say(folder, "waits")
    time.sleep(600)


def together(folder):
    """Wait until all tasks have begun: `srun -K` ends the others as soon as one leaves with an exit code."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(folder, "begins")
    while (folder / "story.txt").read_text().count("begins") < int(os.environ["SLURM_NTASKS"]):
        time.sleep(0.01)


def main():
    if sys.argv[1] != "run":
        os.execv(sys.executable, [sys.executable, "-c", REAL, *sys.argv[1:]])
    folder = Path(sys.argv[4])
    behavior = os.environ.get("STAND_IN", "end")
    if (folder / "stand_in.txt").is_file():
        behavior = (folder / "stand_in.txt").read_text()
    if os.environ.get("SLURM_RESTART_COUNT", "0") != "0":
        behavior = "end"
    if behavior == "die" and os.environ["SLURM_PROCID"] == "1":
        while "waits" not in ((folder / "story.txt").read_text() if (folder / "story.txt").exists() else ""):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    if behavior == "deaf":
        say(folder, "waits")
        time.sleep(600)
    if behavior in ("wait", "die"):
        wait(folder)
    if behavior in ("again", "fail"):
        together(folder)
    if behavior == "end" and os.environ["SLURM_PROCID"] == "0":
        (folder / "results.json").write_text(json.dumps({"rows": [ROW]}))
    say(folder, f"ends with {CODES[behavior]}")
    sys.exit(CODES[behavior])


main()

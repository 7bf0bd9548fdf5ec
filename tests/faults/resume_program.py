"""A training as a process of its own: python resume_program.py FOLDER STEPS [HOLD]. Prints each step it made.

After step HOLD it waits for a signal. Exits as the command line does: with the code of the error.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import jax
from flax import nnx
from tiny_models import Counted, TinyMLP, scalar_batch

from sciml.checkpoint import Checkpoints
from sciml.errors import SciMLError
from sciml.launch.signals import StopSignals
from sciml.parallel.step import build_step
from sciml.registry import load
from sciml.training.hooks.base import Hook
from sciml.training.hooks.saving import SaveCheckpoints, resume
from sciml.training.loop import train
from sciml.training.objective import Data
from sciml.training.state import TrainState


class Announce(Hook):
    """Prints every step; after step `hold` waits for a signal."""

    def __init__(self, hold: int, stop: StopSignals):
        self.hold, self.stop = hold, stop

    def on_step(self, run):
        print(f"step {run.step}", flush=True)
        while run.step == self.hold and self.stop.received is None:
            time.sleep(0.01)


def main(folder: str, steps: int, hold: int = 0) -> None:
    model = TinyMLP(nnx.Rngs(0))
    optimizer = load("optimizer", "adam")().build(20)
    step = build_step(model, Data(("y",), relative=False), optimizer)
    batches = Counted(scalar_batch)
    with Checkpoints(folder) as checkpoints, StopSignals() as stop:
        state, _ = resume(checkpoints, TrainState.start(model, optimizer, jax.random.key(1)), batches)
        print(f"start {int(state.step)}", flush=True)
        saving = SaveCheckpoints(checkpoints, every=10, stop_requested=stop)
        train(state, step, batches, [saving, Announce(hold, stop)], steps=steps, fetch_every=5)


if __name__ == "__main__":
    try:
        main(sys.argv[1], *map(int, sys.argv[2:]))
    except SciMLError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)

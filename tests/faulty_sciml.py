"""The real command line with one fault built in: python faulty_sciml.py FAULT ARGUMENTS...

FAULT is `train:MODEL:STEP:SIGNAL` (the process sends itself the signal once that step is done, and the checkpoints
begun before it are written) or `generate:CALL:SIGNAL` (before that batch of samples; finished batches are on disk).
"""

from __future__ import annotations

import os
import signal
import sys

from sciml.cli import main
from sciml.data.writer import ShardWriter
from sciml.pipeline.generation import Simulation
from sciml.training.hooks.saving import SaveCheckpoints


def in_training(model: str, step: str, name: str) -> None:
    """The fault is met in the last hook of the step."""
    original = SaveCheckpoints.on_step

    def on_step(hook, run):
        if run.step == int(step) and hook.checkpoints.folder.parent.name == model:
            hook.checkpoints.wait()
            os.kill(os.getpid(), signal.Signals[name])
        original(hook, run)

    SaveCheckpoints.on_step = on_step


def in_generation(call: str, name: str) -> None:
    """The fault is met before a batch of samples is computed."""
    original, calls = Simulation.simulate, []
    ShardWriter.__init__.__kwdefaults__["max_seconds"] = 0.0

    def simulate(simulation, samples):
        calls.append(samples)
        if len(calls) == int(call):
            os.kill(os.getpid(), signal.Signals[name])
        return original(simulation, samples)

    Simulation.simulate = simulate


FAULTS = {"train": in_training, "generate": in_generation}

if __name__ == "__main__":
    kind, *options = sys.argv.pop(1).split(":")
    FAULTS[kind](*options)
    sys.exit(main())

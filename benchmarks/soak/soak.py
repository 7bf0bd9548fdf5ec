"""A supervised training under random kills, stops and requests to leave, against the same training left in peace.

    python benchmarks/soak/soak.py [--seconds 600] [--every 20] [--processes 2] [--folder DIR] [--seed 0]

Ends with 0 when the parameters are equal (relative difference at most 1e-12), and prints the share of time that was
well spent (goodput), the work lost per failure, how long a failure stayed unnoticed, and how long recovery took.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RECIPE = """
name: soak
problem:
  equation: {kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.06}}
  domain: {x: {periodic: true}}
  initial: {u: {kind: fourier_series, modes: 2}}
  horizon: 0.5
data:
  grid: {x: 16}
  times: 4
  method: {kind: etdrk4, dt: 0.125}
  samples: {train: 48, validation: 4, test: 4}
  quantities: [final_energy]
plan: {data: -1}
models:
  net:
    kind: mlp
    width: 8
    train:
      precision: float64
      optimizer: {kind: adam, learning_rate: 0.001}
      batch: 24
      steps: 200
      checkpoint_every: 200
"""
MODEL = "net"
PROGRAM = (sys.executable, "-c", "import sys; from sciml.cli import main; sys.exit(main())")
TROUBLE = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
EQUAL = 1e-12
TRIAL_STEPS = 1000


@dataclass(frozen=True)
class Hit:
    """One injection: when, and which signal."""

    time: float
    signal: str


@dataclass(frozen=True)
class Soak:
    """How the disturbed training is run."""

    folder: Path
    processes: int
    seconds: float
    every: float
    watchdog: float
    rest: float
    seed: int

    def disturbed(self, overrides: Sequence[str]) -> tuple[int, float, list[Hit]]:
        """Exit code, wall time and injections."""
        command = [*PROGRAM, "train", str(self.folder / "soak.yaml"), "-o", str(self.folder / "disturbed"), *overrides]
        watched = ["--supervise", str(self.processes), "--watchdog", str(self.watchdog), "--rest", str(self.rest)]
        began, hits = time.monotonic(), []
        chance = random.Random(self.seed)
        process = subprocess.Popen([*command, *watched], env=_environment(1), stdout=subprocess.DEVNULL)
        following, known = self.every, list[int]()
        while process.poll() is None:
            time.sleep(0.1)
            passed = time.monotonic() - began
            pids = _members(self.folder / "disturbed")
            if pids and pids != known:  # recovered: it may run for a moment before the next trouble
                known, following = pids, max(following, passed + self.every * chance.uniform(0.3, 0.7))
            if following <= passed < self.seconds and pids:
                number = chance.choice(TROUBLE)
                try:
                    os.kill(chance.choice(pids), number)
                except ProcessLookupError:  # between two attempts: at the next look
                    continue
                hits.append(Hit(time.time(), number.name))
                following = passed + self.every * chance.uniform(0.5, 1.5)
        return process.returncode, time.monotonic() - began, hits


def main() -> int:
    """0 if the disturbed training gave the parameters of the undisturbed one."""
    options = _arguments()
    place = Path(options.folder or tempfile.mkdtemp(prefix="soak-")).absolute()
    place.mkdir(parents=True, exist_ok=True)
    (place / "soak.yaml").write_text(RECIPE)
    soak = Soak(place, options.processes, options.seconds, options.every, options.watchdog, options.rest, options.seed)
    rate = _trial(soak)
    steps = max(int(options.share * options.seconds * rate), 1000)
    interval = max(int(options.save * rate), 10)
    overrides = [f"models.{MODEL}.train.steps={steps}", f"models.{MODEL}.train.checkpoint_every={interval}"]
    print(f"machine: {platform.machine()}, {os.cpu_count()} cores; {time.strftime('%Y-%m-%d')}")
    print(f"{steps} steps at {rate:.0f} steps/s undisturbed, a checkpoint every {interval}", flush=True)
    peace = _train(soak, "peace", overrides)
    code, seconds, hits = soak.disturbed(overrides)
    if code:
        print(f"the disturbed run ended with {code}")
        return code
    difference = _difference(place / "peace", place / "disturbed")
    _tell(soak, _stepping(place / "peace"), peace, seconds, hits, interval)
    print(f"largest relative difference of the parameters: {difference:.1e} (allowed {EQUAL:g})")
    return int(difference > EQUAL)


def _trial(soak: Soak) -> float:
    """Steps per second of undisturbed processes, once they are under way."""
    small = [f"models.{MODEL}.train.steps={TRIAL_STEPS}", f"models.{MODEL}.train.checkpoint_every={TRIAL_STEPS}"]
    _train(soak, "trial", small)
    return TRIAL_STEPS / _stepping(soak.folder / "trial")


def _stepping(folder: Path) -> float:
    """Seconds that the steps of an undisturbed training took, without its start."""
    lines = (folder / "models" / MODEL / "metrics.jsonl").read_text().splitlines()
    told = [(r["step"], r["seconds"]) for r in map(json.loads, lines) if "seconds" in r]
    (first, began), (last, ended) = told[len(told) // 5], told[-1]
    return (ended - began) * last / (last - first)


def _train(soak: Soak, name: str, overrides: Sequence[str]) -> float:
    """Generate and train without disturbance; the wall time of the training."""
    run = ["-o", str(soak.folder / name), *overrides]
    recipe = str(soak.folder / "soak.yaml")
    subprocess.run([*PROGRAM, "generate", recipe, *run], env=_environment(1), stdout=subprocess.DEVNULL, check=True)
    watched = ["--supervise", str(soak.processes)]
    began = time.monotonic()
    subprocess.run(
        [*PROGRAM, "train", recipe, *run, *watched], env=_environment(1), stdout=subprocess.DEVNULL, check=True
    )
    if name == "peace":
        subprocess.run(
            [*PROGRAM, "generate", recipe, "-o", str(soak.folder / "disturbed"), *overrides],
            env=_environment(1),
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return time.monotonic() - began


def _environment(devices: int) -> dict[str, str]:
    flags = f"--xla_force_host_platform_device_count={devices}"
    return {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}


def _events(folder: Path) -> list[dict[str, Any]]:
    path = folder / "supervisor.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _members(folder: Path) -> list[int]:
    """Processes of the present attempt, once it makes steps."""
    events = _events(folder)
    last = max((i for i, event in enumerate(events) if event["event"] == "started"), default=-1)
    later = {event["event"] for event in events[last + 1 :]}
    return events[last]["pids"] if last >= 0 and "under way" in later and not later & {"failed", "stalled"} else []


def _difference(one: Path, other: Path) -> float:
    """Largest relative difference between the parameters of the newest checkpoints."""
    found = []
    for folder in (one, other):
        place = folder / "models" / MODEL / "checkpoints"
        newest = max((p for p in place.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
        import orbax.checkpoint as ocp

        with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
            arrays = checkpointer.restore(newest)
        found.append({name: np.asarray(a) for name, a in arrays.items() if name.startswith("params")})
    first, second = found
    return max(float(np.abs(first[n] - second[n]).max() / np.abs(first[n]).max()) for n in first)


def _tell(soak: Soak, useful: float, peace: float, seconds: float, hits: list[Hit], interval: int) -> None:
    events = _events(soak.folder / "disturbed")
    noticed = [e for e in events if e["event"] in ("failed", "stalled", "left")]
    print(f"{len(hits)} injections: " + ", ".join(f"{s.name} {sum(h.signal == s.name for h in hits)}" for s in TROUBLE))
    for event, name in (("failed", "killed"), ("stalled", "stood still"), ("left", "asked to leave")):
        found = [e for e in noticed if e["event"] == event]
        if found:
            lost = [e["step"] - e["safe"].get(MODEL, 0) for e in found]
            late = [e["time"] - max((h.time for h in hits if h.time <= e["time"]), default=e["time"]) for e in found]
            print(
                f"  {name}: {len(found)}; steps lost {_spread(lost, 0)} (interval {interval}); "
                f"noticed after {_spread(late, 2)} s"
            )
    recovered = [e["seconds"] for e in events if e["event"] == "recovered"]
    print(f"recovery, from notice to the next step: {_spread(recovered, 1)} s")
    print(f"undisturbed {peace:.1f} s with start, disturbed {seconds:.1f} s; goodput {useful / seconds:.1%}")


def _spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return "none"
    return f"{np.median(values):.{digits}f} (median), {max(values):.{digits}f} (most)"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="no injection after that")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between injections, on average")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--watchdog", type=float, default=8.0, help="seconds that a step may take")
    parser.add_argument("--rest", type=float, default=0.0, help="seconds to go on without a failed process's place")
    parser.add_argument("--share", type=float, default=0.5, help="undisturbed time, as a share of --seconds")
    parser.add_argument("--save", type=float, default=2.0, help="seconds between checkpoints")
    parser.add_argument("--folder", default="")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

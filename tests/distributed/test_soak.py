"""A short version of `benchmarks/soak`: random kills, stops and requests to leave change no bit of the result."""

from __future__ import annotations

import subprocess
import sys

import pytest

SECONDS = 600


@pytest.mark.long
def test_a_training_survives_a_minute_of_trouble(repository, tmp_path):
    program = repository / "benchmarks/soak/soak.py"
    options = ["--seconds", "50", "--every", "12", "--share", "0.3", "--folder", str(tmp_path)]
    command = [sys.executable, str(program), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "largest relative difference of the parameters: 0.0e+00" in ended.stdout
    injected = int(ended.stdout.split(" injections")[0].split()[-1])
    assert injected > 0 and "goodput" in ended.stdout

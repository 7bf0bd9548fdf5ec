"""Energy: counters of a made-up machine, counters that go around, and the words where there are none."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from sciml.launch import energy
from sciml.launch.energy import NOT_MEASURED, Energy, rapl


@pytest.fixture
def powercap(tmp_path):
    """Two packages, and a part of the first, which is not to be counted twice."""
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text("1000000\n")
        (tmp_path / name / "max_energy_range_uj").write_text("262000000\n")
    return tmp_path


def test_packages_are_added_up(powercap):
    meter = Energy({"cpu": rapl(powercap)})
    for name, micro_joules in {
        "intel-rapl:0": 3_000_000,
        "intel-rapl:1": 5_500_000,
        "intel-rapl:0:0": 9_000_000,
    }.items():
        (powercap / name / "energy_uj").write_text(f"{micro_joules}\n")
    meter.update()
    assert meter.joules == {"cpu": 2.0 + 4.5}


def test_a_counter_that_goes_around(powercap):
    meter = Energy({"cpu": rapl(powercap)})
    for micro_joules in (260_000_000, 2_000_000):
        (powercap / "intel-rapl:0" / "energy_uj").write_text(str(micro_joules))
        meter.update()
    assert meter.joules == {"cpu": pytest.approx(263.0, rel=1e-12)}


def test_nothing_to_read(tmp_path, monkeypatch):
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    meter = Energy()
    meter.update()
    assert meter.joules == NOT_MEASURED == "not measured"


@pytest.mark.parametrize(("visible", "counted"), [("", 2), ("1", 1), ("GPU-abc", 2)])
def test_gpus_that_are_visible(tmp_path, monkeypatch, visible, counted):
    used = {0: 1000, 1: 1000}
    library = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetTotalEnergyConsumption=used.get,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    monkeypatch.setenv(energy.VISIBLE, visible)
    meter = Energy()
    used.update({0: 3000, 1: 3000})
    meter.update()
    assert meter.joules == {"gpu": 2.0 * counted}


def test_a_driver_that_does_not_answer(monkeypatch, tmp_path):
    def fail():
        raise RuntimeError("no driver")

    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=RuntimeError, nvmlInit=fail))
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    assert Energy().joules == NOT_MEASURED

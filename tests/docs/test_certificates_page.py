"""`docs/certificates.py --check` sees a certificate that does not pass, without computing one."""

from __future__ import annotations

import importlib
import sys

import pytest

PASSED = "Order certificate: Heat (diffusivity = 0.01)\n  pass  order in time               etdrk4\n         4.00\n"


@pytest.fixture
def script(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "docs"))
    yield importlib.import_module("certificates")
    sys.modules.pop("certificates", None)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (PASSED + "  1 of 1 checks passed", []),
        (PASSED + "  FAIL  invariants                   heat\n  1 of 2 checks passed", ["invariants"]),
        (PASSED + "  2 of 2 checks passed", ["sum of the checks"]),
        (PASSED.replace("pass", "FAIL") + "  1 of 1 checks passed", ["order in time", "sum of the checks"]),
        ("", ["sum of the checks"]),
    ],
)
def test_what_does_not_pass_is_named(script, text, wrong):
    assert script.failing(text) == wrong


def test_every_certificate_on_the_page_is_read(script):
    written = script.written()
    assert len(written) >= 26
    assert not script.failing(written["heat"])

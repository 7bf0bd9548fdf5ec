"""The layout: JSON round trip, ids of the splits, the spec of a model, and what it refuses."""

from __future__ import annotations

import json

import generated_data
import numpy as np
import pytest

from sciml.data import Coordinate, Layout
from sciml.data.layout import fingerprint
from sciml.errors import ConfigError, DataError
from sciml.spec import Statistics, Variable


def test_json_round_trip():
    layout = generated_data.layout()
    again = Layout.from_json(json.loads(json.dumps(layout.to_json())))
    assert again == layout
    assert fingerprint(again, {"seed": 1}) == fingerprint(layout, {"seed": 1})


def test_fingerprint_sees_every_change():
    layout = generated_data.layout()
    others = [
        (generated_data.layout(dtype="float32"), {"seed": 1}),
        (generated_data.layout(train=13), {"seed": 1}),
        (generated_data.layout(outputs=(Variable("u", "degC", (3, 16), ("time", "x")),)), {"seed": 1}),
        (layout, {"seed": 2}),
    ]
    assert fingerprint(layout, {"seed": 1}) not in {fingerprint(*other) for other in others}


def test_splits_are_consecutive_ranges():
    layout = generated_data.layout()
    assert [layout.ids(split) for split in layout.splits] == [range(12), range(12, 15), range(15, 20)]
    assert layout.samples == 20
    with pytest.raises(DataError, match="no split 'tset'"):
        layout.ids("tset")
    assert list(generated_data.layout(validation=0).splits) == ["train", "test"]


def test_spec_carries_units_coordinates_and_ranges():
    layout = generated_data.layout()
    spec = layout.spec(
        statistics={
            "diffusivity": Statistics(0.5, 0.1, 0.2, 0.9),
            "u": Statistics([0, 0, 0], [1, 1, 1], [-3, -2, -1], [1, 2, 3]),
        }
    )
    assert [v.name for v in spec.inputs] == ["u0", "diffusivity"]
    assert (spec.input("diffusivity").low, spec.input("diffusivity").high) == (0.2, 0.9)
    assert (spec.output("u").low, spec.output("u").high) == (-3.0, 3.0)
    assert spec.periodic == ("x",)
    assert spec.coordinates["time"] == generated_data.TIMES
    assert [v.name for v in layout.spec(("diffusivity",), ("energy",)).outputs] == ["energy"]
    assert not layout.spec(("diffusivity",), ("energy",)).coordinates


@pytest.mark.parametrize("values", [(0.0, 1.0, 1.0), (0.0, 2.0, 1.0), (0.0, np.nan), (np.inf,)])
def test_points_must_increase(values):
    with pytest.raises(DataError, match="do not increase"):
        Coordinate(values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": (Variable("u", "K", (16,), ("x",)),)}, "uses a name twice"),
        ({"inputs": (Variable("u0", "K", (17,), ("x",)),)}, "does not fit the coordinates of axis 'x'"),
        ({"parameters": (Variable("a", "K", (16,), ("x",)),)}, "parameters/a is not a scalar"),
        ({"splits": {"train": 3, "test": -1}}, "fewer than none"),
        ({"splits": {"train": 0}}, "without samples"),
        ({"dtype": "float16"}, "unknown dtype"),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(ConfigError, match=message):
        generated_data.layout(**changes)

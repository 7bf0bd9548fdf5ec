"""Every registered optimizer improves a toy problem, keeps dtypes, restarts and does not compile twice."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_identical
from compilation import no_recompilation
from flax import nnx
from tiny_models import Curve, TinyMLP, pins, scalar_batch

from sciml.checkpoint import Checkpoints
from sciml.errors import ConfigError
from sciml.parallel.plan import Plan
from sciml.parallel.step import build_step
from sciml.registry import describe, load, names
from sciml.training.objective import Data
from sciml.training.state import TrainState

OPTIMIZERS = names("optimizer")
DOUBLE_ONLY = {"levenberg_marquardt", "broyden"}
STEPS = 60


def _training(name: str, precision="float64", steps: int = STEPS):
    model = TinyMLP(nnx.Rngs(0))
    optimizer = load("optimizer", name)().build(steps)
    state = TrainState.start(model, optimizer, jax.random.key(1), precision)
    step = build_step(model, Data(("y",), relative=False), optimizer, Plan(precision=precision))
    return state, step


def test_the_expected_optimizers_are_registered():
    expected = {"adam", "adamw", "sgd", "muon", "lbfgs", "levenberg_marquardt", "broyden"}
    assert expected <= set(OPTIMIZERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_improves_a_toy_problem(name):
    state, step = _training(name)
    batch, first, last = scalar_batch(), None, None
    for _ in range(STEPS):
        state, metrics = step(state, batch)
        first = first if first is not None else float(metrics["loss"])
        last = float(metrics["loss"])
    assert last < 0.7 * first


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_keeps_dtypes_and_compiles_once(name, precision):
    if name in DOUBLE_ONLY and precision == "float32":
        with pytest.raises(ConfigError, match="double precision"):
            _training(name, precision)
        return
    state, step = _training(name, precision)
    before = jax.tree.map(lambda leaf: (leaf.dtype, leaf.shape), state)
    state, _ = step(state, scalar_batch())
    with no_recompilation():
        state, metrics = step(state, scalar_batch(seed=1))
    assert jax.tree.map(lambda leaf: (leaf.dtype, leaf.shape), state) == before
    assert {leaf.dtype for leaf in jax.tree.leaves(state.params)} == {jnp.dtype(precision)}
    assert {"loss", "grad_norm", "finite"} <= set(metrics)
    assert "learning_rate" in metrics or "damping" in metrics


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_its_state_survives_a_checkpoint_bit_for_bit(name, tmp_path):
    state, step = _training(name)
    for seed in range(3):
        state, _ = step(state, scalar_batch(seed=seed))
    blank, _ = _training(name)
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(3, state)
        restored, _ = checkpoints.restore(blank)
    assert_identical(restored, state)
    (one, _), (two, _) = step(restored, scalar_batch(seed=3)), step(state, scalar_batch(seed=3))
    assert_identical(one, two)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_is_a_frozen_dataclass_with_documented_options(name):
    cls = load("optimizer", name)
    config = cls()
    assert hash(config) == hash(cls())
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.learning_rate = 1.0
    options = describe("optimizer", name).options
    assert options and all(option.doc for option in options)
    assert "Source:" in cls.__doc__


@pytest.mark.parametrize("name", ["levenberg_marquardt", "broyden"])
def test_least_squares_solves_a_problem_with_terms_of_different_rows(name):
    """Pins and points have 8 and 16 rows; the residual goes to rounding only if each J is right."""
    model = TinyMLP(nnx.Rngs(0), width=12)
    optimizer = load("optimizer", name)().build(100)
    state = TrainState.start(model, optimizer, jax.random.key(1))
    step = build_step(model, Curve(points=64), optimizer, Plan())
    losses = []
    for _ in range(100):
        state, metrics = step(state, pins())
        losses.append(float(metrics["loss"]))
    # every step draws new points, and the loss on those of a single step varies tenfold around its level
    assert np.median(losses[-20:]) < 1e-4 * losses[0]

"""Which part of every array each device holds, and the sums over devices that gradients need."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sciml import axes
from sciml.errors import ConfigError
from sciml.parallel import buffers
from sciml.parallel.names import AXES, DATA, DOMAIN, EXPERT, FSDP, ROW_AXES
from sciml.parallel.plan import Plan
from sciml.training.objective import Batch
from sciml.training.optimizer import Parts
from sciml.training.state import cast, parameters
from sciml.types import Array, PyTree, Scalar

SHARDED = "sharded"
"""Metadata of a parameter that this device has a part of: the axis, counted from the last (-1)."""


@final
@dataclass(frozen=True)
class Leaf:
    """One parameter: the mesh axis of each of its axes, and the axis (from the last) that fsdp stores in parts."""

    split: tuple[str | None, ...]
    storage: int | None
    stacked: bool


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PerDevice:
    """An array of which every device has its own: one line of `lines` for each along the mesh axes `names`."""

    lines: Array
    names: tuple[str, ...] = field(metadata={"static": True})

    @classmethod
    def of(cls, value: Array, names: tuple[str, ...]) -> PerDevice:
        """From this device's array, inside a step."""
        return cls(value[None], names)

    @property
    def own(self) -> Array:
        """This device's array, inside a step."""
        return self.lines[0]


@final
@dataclass(frozen=True)
class Layout:
    """A plan applied to one model: shards of parameters and optimizer state, parts of a batch.

    space: for each variable of a batch that is split in space, the position of its first space axis in one
    sample; None for a model without a grid, whose rows are then spread over `domain` as well.
    leaves: the parameters, in the order of `jax.tree.leaves`.
    """

    plan: Plan
    mesh: Mesh | AbstractMesh
    space: dict[str, int] | None
    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, model: nnx.Module, plan: Plan) -> Layout:
        """The layout of `model`. ConfigError where the plan's axes split nothing of it or do not divide."""
        refuse_undivided(model, plan)
        return cls._on(plan.mesh(), model, plan, parameters(model))

    @classmethod
    def abstract(cls, model: nnx.Module, plan: Plan, params: PyTree) -> Layout:
        """The layout that `of` gives on enough devices, for parameters or their shapes; nothing is checked."""
        return cls._on(plan.abstract_mesh(), model, plan, params)

    @classmethod
    def _on(cls, mesh: Mesh | AbstractMesh, model: nnx.Module, plan: Plan, params: PyTree) -> Layout:
        leaves = tuple(_leaf(plan, variable) for _, variable in _variables(params))
        return cls(plan, mesh, getattr(model, "space_axes", None), leaves)

    def assembler(self, model: nnx.Module) -> Callable[[PyTree], nnx.Module]:
        """params -> model, in the plan's precision. Constants are kept on the host: they belong to no device."""
        graphdef, _, constants = nnx.split(model, nnx.Param, ...)
        precision = self.plan.precision
        constants = cast(jax.device_get(constants), precision)

        def assemble(params: PyTree) -> nnx.Module:
            if precision == "bfloat16":
                params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
            return nnx.merge(graphdef, self.mark(params), jax.tree.map(jnp.asarray, constants))

        return assemble

    @property
    def rows(self) -> tuple[str, ...]:
        """Mesh axes over which the rows of a batch are spread."""
        return self.plan.used(*(ROW_AXES if self.space is not None else (*ROW_AXES, DOMAIN)))

    @property
    def sums(self) -> tuple[str, ...]:
        """Mesh axes over which each device has another part of the loss."""
        return self.plan.used(DATA, FSDP, EXPERT, DOMAIN)

    @property
    def parts(self) -> int:
        """Number of parts of the loss."""
        return math.prod(self.plan.sizes[name] for name in self.sums)

    @property
    def whole(self) -> P:
        """Every device holds everything."""
        return P()

    def placement(self) -> axes.Placement:
        """What the model's layers see of the plan."""
        seen = self.plan.placement(splits_space=self.space is not None)
        gather = self.gather_layer if self.plan.zero == 3 else None
        return dataclasses.replace(seen, options={**seen.options, "gather": gather})

    def specs(self, tree: PyTree, *, sharded: bool) -> PyTree:
        """Partition specs of whole parameters, or of a state made of them, stored in parts over `fsdp` or not."""

        def spec(leaf: Any) -> P:
            if isinstance(leaf, PerDevice):
                return P(leaf.names or None)
            if not isinstance(leaf, nnx.Variable) or not jax.tree.leaves(leaf):  # masked by the optimizer
                return P()
            known = _leaf(self.plan, leaf)
            split = list(known.split)
            if sharded and known.storage is not None:
                split[known.storage] = FSDP
            return P(*split)

        return _map(spec, tree)

    def shardings(self, specs: PyTree) -> PyTree:
        """Specs as shardings on the mesh."""
        mesh: Any = self.mesh
        return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda x: isinstance(x, P))

    def batch(self, batch: Batch) -> dict[str, P]:
        """Partition specs of a batch. ConfigError where rows or space do not divide."""
        self.check_rows(batch)
        specs = {}
        for name, leaf in batch.items():
            where = (self.space or {}).get(name) if self.plan.domain > 1 else None
            _refuse_odd_space(self.plan, name, leaf, where)
            specs[name] = P(self.rows or None, *((None,) * where + (DOMAIN,) if where is not None else ()))
        return specs

    def check_rows(self, batch: PyTree) -> None:
        """Refuse a batch whose rows cannot be spread evenly."""
        sizes = self.plan.row_parts(has_grid=self.space is not None)
        parts = math.prod(sizes.values())
        rows = {jax.tree_util.keystr(path): leaf.shape[:1] for path, leaf in jax.tree.leaves_with_path(batch)}
        bad = {name: n for name, n in rows.items() if not n or n[0] == 0 or n[0] % parts}
        if bad:
            product = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
            raise ConfigError(
                "the rows of a batch do not divide over the devices",
                expected=f"a multiple of {parts} rows ({product})",
                got=", ".join(f"{name}: {n[0] if n else 'a scalar'}" for name, n in bad.items()),
                fix="choose the batch size or the number of points as such a multiple, or a smaller plan",
            )

    # Inside the step, on one device's arrays ----------------------------------------------------------------------

    def vary(self, params: PyTree) -> PyTree:
        """Parameters that may differ between devices, so that differentiation does not communicate by itself."""
        return jax.tree.map(lambda leaf: axes.vary(leaf, self.sums), params)

    def cut(self, tree: PyTree) -> PyTree:
        """This device's shards of whole parameters or gradients."""
        count = self.plan.fsdp

        def one(leaf: Leaf, value: Array) -> Array:
            if leaf.storage is None:
                return value
            size, axis = value.shape[leaf.storage] // count, leaf.storage % value.ndim
            return jax.lax.dynamic_slice_in_dim(value, jax.lax.axis_index(FSDP) * size, size, axis)

        values, structure = jax.tree.flatten(tree)
        return jax.tree.unflatten(structure, [one(*pair) for pair in zip(self.leaves, values, strict=True)])

    def gather(self, shards: PyTree) -> PyTree:
        """Parameters from shards; those of stacks stay shards, which the stack gathers layer by layer."""
        values, structure = jax.tree.flatten(shards)
        where = [None if leaf.stacked else leaf.storage for leaf in self.leaves]
        return jax.tree.unflatten(structure, self._gathered(values, where))

    def mark(self, params: PyTree) -> PyTree:
        """Parameters of stacks with a note along which axis they are shards."""
        variables, structure = jax.tree.flatten(params, is_leaf=_is_variable)
        for i, leaf in enumerate(self.leaves):
            if self._arrives_in_shards(leaf):
                variable = variables[i]
                variables[i] = type(variable)(variable[...], **{**variable.get_metadata(), SHARDED: leaf.storage})
        return jax.tree.unflatten(structure, variables)

    def gather_layer(self, layer: PyTree) -> PyTree:
        """Whole parameters of one layer of a stack, from its marked shards."""
        variables, _ = jax.tree.flatten(layer, is_leaf=_is_variable)
        values, structure = jax.tree.flatten(layer)
        where = [variable.get_metadata().get(SHARDED) for variable in variables]
        return jax.tree.unflatten(structure, self._gathered(values, where))

    def reduce(self, gradient: PyTree, parts: Parts, apart: tuple[str, ...] = ()) -> tuple[PyTree, Parts]:
        """Sum of the devices' gradients, and of the numbers `parts`, which travel along.

        From ZeRO stage 1 on each device gets its shards of the gradient, by scattering from 2 on. Gradients are not
        summed over the mesh axes `apart`.
        """
        values, structure = jax.tree.flatten(gradient)
        where = [leaf.storage if self.plan.zero >= 2 else None for leaf in self.leaves]
        todo = [None if self._arrives_in_shards(leaf) else axis for leaf, axis in zip(self.leaves, where, strict=True)]
        values = buffers.scatter_sums(values, todo, FSDP, self.plan.fsdp)
        over = [tuple(n for n in self.sums if n not in (*self.own(leaf), *apart)) for leaf in self.leaves]
        numbers = list(parts.values())
        summed = buffers.sums([*values, *numbers], [*over, *[self.sums] * len(numbers)])
        result = jax.tree.unflatten(structure, summed[: len(values)])
        totals = dict(zip(parts, summed[len(values) :], strict=True))
        return (self.cut(result) if self.plan.zero == 1 else result), totals

    def own(self, leaf: Leaf) -> tuple[str, ...]:
        """Mesh axes along which the devices hold different parts of a summed gradient."""
        scattered = leaf.storage is not None and self.plan.zero >= 2
        return tuple(name for name in AXES if name in leaf.split or (name == FSDP and scattered))

    def local_shape(self, leaf: Leaf, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of a gradient on one device, after the sums over devices, given that of the parameter."""
        split = list(leaf.split)
        if leaf.storage is not None and FSDP in self.own(leaf):
            split[leaf.storage] = FSDP
        return tuple(n // (self.plan.sizes[name] if name else 1) for n, name in zip(shape, split, strict=True))

    def norm(self, tree: PyTree) -> Scalar:
        """Euclidean norm of gradients of which each device may have a part."""
        squares: dict[tuple[str, ...], Scalar] = {}
        for leaf in jax.tree.leaves(tree):
            key = tuple(sorted(axes.varying(leaf)))
            squares[key] = squares.get(key, 0.0) + jnp.sum(jnp.real(leaf * jnp.conj(leaf)))
        return jnp.sqrt(sum(jax.lax.psum(value, key) if key else value for key, value in squares.items()))

    def _arrives_in_shards(self, leaf: Leaf) -> bool:
        """Whether the model gathers this parameter itself, so that its gradient comes scattered."""
        return self.plan.zero == 3 and leaf.stacked and leaf.storage is not None

    def _gathered(self, values: list[Array], where: list[int | None]) -> list[Array]:
        return buffers.gather(values, where, FSDP, self.plan.fsdp)


def refuse_undivided(model: nnx.Module, plan: Plan) -> None:
    """Raise ConfigError where the plan's axes split nothing of a model, or do not divide; needs no devices."""
    variables = _variables(parameters(model))
    _refuse_useless_axes(plan, model, variables)
    _refuse_odd_widths(plan, variables)


def _leaf(plan: Plan, variable: nnx.Variable) -> Leaf:
    """Storage: the longest axis that is whole and divides; an axis of layers stays together."""
    names, shape = _names(variable), _shape(variable)
    split = tuple(plan.mesh_axis(name) for name in names)
    free = [i for i, n in enumerate(shape) if split[i] is None and names[i] != axes.LAYERS and n and n % plan.fsdp == 0]
    longest = max(free, key=lambda i: (shape[i], -i), default=None)
    storage = None if longest is None or plan.fsdp == 1 else longest - len(shape)
    return Leaf(split, storage, axes.LAYERS in names)


def _is_variable(leaf: Any) -> bool:
    return isinstance(leaf, nnx.Variable)


def _map(function: Callable[[Any], Any], tree: PyTree) -> PyTree:
    return jax.tree.map(function, tree, is_leaf=lambda leaf: isinstance(leaf, nnx.Variable | PerDevice))


def _variables(params: PyTree) -> list[tuple[str, nnx.Variable]]:
    pairs, _ = jax.tree_util.tree_flatten_with_path(params, is_leaf=_is_variable)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), variable) for path, variable in pairs]


def _names(variable: nnx.Variable) -> tuple[str | None, ...]:
    """Logical name of every axis of a parameter, None for most."""
    names = variable.get_metadata().get("axes", ())
    return (*names, *(None,) * (len(_shape(variable)) - len(names)))


def _shape(variable: nnx.Variable) -> tuple[int, ...]:
    """Of an array or of what stands for one."""
    return jax.tree.leaves(variable)[0].shape


def _refuse_odd_widths(plan: Plan, variables: list[tuple[str, nnx.Variable]]) -> None:
    pairs = [(path, n, size) for path, v in variables for n, size in zip(_names(v), _shape(v), strict=True)]
    split = [(path, name, plan.mesh_axis(name), size) for path, name, size in pairs]
    for path, name, to, size in split:
        if to and size % plan.sizes[to]:
            common = math.gcd(*(n for _, _, other, n in split if other == to))
            fits = max(n for n in range(1, plan.sizes[to] + 1) if common % n == 0)
            raise ConfigError(
                f"{name} of {path} does not divide over the mesh axis {to}",
                expected=f"a multiple of {plan.sizes[to]}",
                got=size,
                fix=f"{to}: {fits} in the plan, or a width that is such a multiple",
            )


def _refuse_useless_axes(plan: Plan, model: nnx.Module, variables: list[tuple[str, nnx.Variable]]) -> None:
    found = {plan.mesh_axis(name) for _, variable in variables for name in _names(variable)}
    useless = [name for name in plan.used("tensor", "pipeline", "expert") if name not in found]
    if useless:
        kind = type(getattr(model, "network", model)).__name__
        raise ConfigError(
            f"the plan's {' and '.join(useless)} split nothing of {kind}",
            expected="a model with such layers (pipeline: a stack, expert: a mixture of experts)",
            got=", ".join(f"{name} {plan.sizes[name]}" for name in useless),
            fix=f"{', '.join(f'{name}: 1' for name in useless)} in the plan",
        )


def _refuse_odd_space(plan: Plan, name: str, leaf: Array, where: int | None) -> None:
    if where is not None and leaf.shape[1 + where] % plan.domain:
        points = leaf.shape[1 + where]
        raise ConfigError(
            f"the first space axis of {name!r} does not divide over the mesh axis domain",
            expected=f"a multiple of {plan.domain} points",
            got=points,
            fix=f"domain: {math.gcd(points, plan.domain)} in the plan",
        )

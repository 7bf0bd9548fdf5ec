"""Gradients that cross the slow mesh axis `data` in few bytes, with what was lost added to the next message.

Both methods wrap a first-order optimizer; their memory (errors, bases) belongs to the devices that it was made for.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
from sciml.errors import ConfigError
from sciml.parallel.cost import gradient_traffic, ring_share
from sciml.parallel.layout import Layout, PerDevice
from sciml.parallel.names import DATA
from sciml.parallel.plan import Plan
from sciml.training.first_order import FirstOrder, Found, Moments
from sciml.training.optimizer import LossFunctions, Optimizer, Update
from sciml.types import Array, PyTree

BLOCK = 1024
"""Numbers that share one scale when they are sent as signs."""
RENEWAL = 80
"""Steps between two whole gradients that renew the variance of `one_bit` after its warm-up."""


def compressed(optimizer: Optimizer, model: nnx.Module, plan: Plan) -> Optimizer:
    """`optimizer` with the plan's compression; itself where there is none, or no axis to save on.

    Raises ConfigError for an optimizer that cannot be combined with the method.
    """
    if plan.compress == "none" or plan.sizes[DATA] == 1:
        return optimizer
    return compressing(optimizer, Layout.of(model, plan))


def compressing(optimizer: Optimizer, layout: Layout) -> Compressed:
    """`optimizer` with the method that the plan of a layout names, on devices that need not be there."""
    method = layout.plan.compress
    return Compressed(compressible(optimizer, method), layout, _METHODS[method])


def compressed_traffic(layout: Layout, params: PyTree) -> dict[str, float]:
    """Bytes per device and step for gradients, as `gradient_traffic` counts them, those over `data` by few.

    Of `one_bit` the mean over its steps after the warm-up, in which whole gradients travel.
    """
    sent = gradient_traffic(layout, params, layout.plan.used(DATA))
    few = _METHODS[layout.plan.compress].sent(layout.plan, _gradients(layout, params))
    return {**sent, DATA: sent.get(DATA, 0.0) + few}


def compressible(optimizer: Optimizer, compress: str) -> FirstOrder:
    """`optimizer`, if it goes with the method of compression; ConfigError if it does not."""
    if not isinstance(optimizer, FirstOrder) or not optimizer.is_elementwise:
        raise ConfigError(
            "only optimizers that treat every number on its own work with compressed gradients",
            expected="adam, adamw or sgd with powersgd; adam with one_bit",
            got=optimizer.title,
            fix="optimizer: adam, or compress: none",
        )
    _METHODS[compress].refuse(optimizer)
    return optimizer


@final
@dataclass(frozen=True)
class Gradient:
    """A gradient on one device: shape, dtype, and the mesh axes along which devices hold different parts of it."""

    shape: tuple[int, ...]
    dtype: Any
    names: tuple[str, ...]


class Method(abc.ABC):
    """How gradients that are sums over all mesh axes but `data` become an update."""

    @abc.abstractmethod
    def refuse(self, optimizer: FirstOrder) -> None:
        """Raise ConfigError for an optimizer that the method does not go with."""

    @abc.abstractmethod
    def memory(self, of: Compressed, gradients: list[Gradient]) -> PyTree:
        """What every device remembers, before the first step."""

    @abc.abstractmethod
    def sent(self, plan: Plan, gradients: list[Gradient]) -> float:
        """Bytes that a device sends over `data` in a step."""

    @abc.abstractmethod
    def update(self, of: Compressed, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """One update; `state` holds that of the optimizer inside ("inner") and the memory ("memory")."""


@final
@dataclass(frozen=True)
class Compressed(Optimizer):
    """A first-order optimizer that lets a method sum its gradients over the mesh axis `data`."""

    inner: FirstOrder
    layout: Layout
    method: Method

    @property
    def is_elementwise(self) -> bool:
        """As the optimizer inside."""
        return True

    @property
    def title(self) -> str:
        """As the optimizer inside."""
        return self.inner.title

    @property
    def count(self) -> int:
        """Number of devices that share the compressed sum."""
        return self.layout.plan.sizes[DATA]

    def init(self, params: PyTree) -> PyTree:
        """State of the optimizer inside, and what every device remembers."""
        memory = self.method.memory(self, _gradients(self.layout, params))
        return {"inner": self.inner.init(params), "memory": memory}

    def update(self, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """As the method does it."""
        return self.method.update(self, functions, params, state)

    def zeros(self, shape: tuple[int, ...], like: Gradient, names: tuple[str, ...]) -> PerDevice:
        devices = math.prod(self.layout.plan.sizes[name] for name in names)
        return PerDevice(jnp.zeros((devices, *shape), like.dtype), names)


@final
@dataclass(frozen=True)
class PowerSGD(Method):
    """Gradients as products of two thin matrices, by one power iteration per step from the last one's basis.

    An array of n x m numbers (its axes grouped to be nearly square) travels as (n + m) rank; vectors, and what would
    not get smaller, travel whole. Source: T. Vogels et al., arXiv:1905.13727, algorithms 1 and 2.
    """

    def refuse(self, optimizer: FirstOrder) -> None:
        """See `Method`: any will do."""

    def sent(self, plan: Plan, gradients: list[Gradient]) -> float:
        """See `Method`: two sums of thin matrices, the rest whole."""
        numbers = [g.dtype.itemsize * _numbers_sent(g.shape, plan.rank) for g in gradients]
        return 2 * ring_share(plan.sizes[DATA]) * sum(numbers)

    def update(self, of: Compressed, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """See `Method`."""
        (loss, parts), gradient = functions.value_and_grad_apart(params)
        values, structure = jax.tree.flatten(gradient)
        rank = of.layout.plan.rank
        thin = [i for i, value in enumerate(values) if _is_thin(value.shape, rank)]
        memory = state["memory"]
        messages = [values[i] + error.own for i, error in zip(thin, memory["errors"], strict=True)]
        matrices = [m.reshape(matrix_shape(m.shape)) for m in messages]
        left = jax.lax.psum([m @ basis.own for m, basis in zip(matrices, memory["bases"], strict=True)], DATA)
        left = [jnp.linalg.qr(p)[0] for p in left]
        own = [m.T @ p for m, p in zip(matrices, left, strict=True)]
        right, rest = jax.lax.psum((own, [value for i, value in enumerate(values) if i not in thin]), DATA)
        sums, whole = iter([p @ q.T for p, q in zip(left, right, strict=True)]), iter(rest)
        values = [next(sums).reshape(v.shape) if i in thin else next(whole) for i, v in enumerate(values)]
        gradient = jax.tree.unflatten(structure, values)
        update = of.inner.applied(Found(loss, parts, functions.norm(gradient)), gradient, params, state["inner"])
        lost = [m - (p @ q.T).reshape(m.shape) for m, p, q in zip(messages, left, own, strict=True)]
        kept = {"errors": _renewed(memory["errors"], lost), "bases": _renewed(memory["bases"], right)}
        return update._replace(state={"inner": update.state, "memory": kept})

    def memory(self, of: Compressed, gradients: list[Gradient]) -> PyTree:
        """See `Method`."""
        rank = of.layout.plan.rank
        thin = [g for g in gradients if _is_thin(g.shape, rank)]
        errors = [of.zeros(g.shape, g, (DATA, *g.names)) for g in thin]
        bases = [of.zeros((matrix_shape(g.shape)[1], rank), g, g.names) for g in thin]
        key = jax.random.key(0)
        drawn = [jax.random.normal(jax.random.fold_in(key, i), b.lines.shape[1:]) for i, b in enumerate(bases)]
        return {"errors": errors, "bases": [_filled(b, value) for b, value in zip(bases, drawn, strict=True)]}


@final
@dataclass(frozen=True)
class OneBitAdam(Method):
    """Adam whose momentum travels as signs, after `warmup` steps in which its variance settles.

    Signs of blocks with one scale each go to the device that adds them (an all-to-all), and the signs of the sums
    back to all, so that the bytes do not grow with the number of devices. What signs lose on both ways is added to
    the next message. Source: H. Tang et al., arXiv:2102.02888, algorithm 1. There the variance stays as the warm-up
    left it, and steps get too short when gradients shrink; here a whole gradient renews it every `RENEWAL` steps, and
    counts for as many (after Y. Lu et al., arXiv:2202.06009, whose intervals grow).
    """

    def refuse(self, optimizer: FirstOrder) -> None:
        """See `Method`: Adam without clipping."""
        if optimizer.moments is None:
            raise ConfigError("one_bit compresses the momentum of Adam", got=optimizer.title, fix="optimizer: adam")
        if optimizer.clip is not None:
            raise ConfigError(
                "one_bit cannot clip gradients",
                got=f"clip: {optimizer.clip}",
                reason="its variance would be that of clipped gradients, its momentum that of whole ones",
                fix="leave clip out, or compress: powersgd",
            )

    def sent(self, plan: Plan, gradients: list[Gradient]) -> float:
        """See `Method`: an all-to-all and a sum, bits and the scales of blocks in both; now and then all numbers."""
        groups = _kinds([g.names for g in gradients])
        lines = [_filled_up(sum(math.prod(gradients[i].shape) for i in g), plan.sizes[DATA]) for g in groups]
        scales = [line / BLOCK * gradients[g[0]].dtype.itemsize for line, g in zip(lines, groups, strict=True)]
        signs = 3 * ring_share(plan.sizes[DATA]) * (sum(lines) / 8 + sum(scales))
        whole = 2 * ring_share(plan.sizes[DATA]) * sum(g.dtype.itemsize * math.prod(g.shape) for g in gradients)
        return signs + (whole - signs) / RENEWAL

    def update(self, of: Compressed, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """See `Method`: plain Adam at first, then momentum by signs, the variance renewed now and then."""
        (loss, parts), gradient = functions.value_and_grad_apart(params)
        count, adam, (b1, b2, eps) = state["inner"]["count"], state["inner"]["transformation"], _moments(of)
        past = count - of.layout.plan.warmup
        renewal = max(b2**RENEWAL, 0.9)  # never by one batch alone

        def by_all() -> tuple[PyTree, PyTree, PyTree, Array]:
            whole = jax.lax.psum(gradient, DATA)
            decay = jnp.where(past < 0, b2, renewal)
            momentum = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, adam.mu, whole)
            variance = jax.tree.map(lambda v, g: (decay * v + (1 - decay) * g**2).astype(v.dtype), adam.nu, whole)
            return momentum, variance, state["memory"], functions.norm(whole)

        def by_signs() -> tuple[PyTree, PyTree, PyTree, Array]:
            momentum, memory = self._momentum(of, gradient, state)
            return momentum, adam.nu, memory, functions.norm(momentum)

        is_whole = (past < 0) | (past % RENEWAL == RENEWAL - 1)
        momentum, variance, memory, norm = jax.lax.cond(is_whole, by_all, by_signs)
        steps, renewals = jnp.minimum(past, -1) + of.layout.plan.warmup + 1, jnp.maximum(past + 1, 0) // RENEWAL
        shares = 1 - b1 ** (count + 1), 1 - b2**steps * renewal**renewals
        direction = jax.tree.map(lambda m, v: _adams_direction(m, v, shares, eps), momentum, variance)
        inner = {**state["inner"], "transformation": adam._replace(count=adam.count + 1, mu=momentum, nu=variance)}
        update = of.inner.moved(Found(loss, parts, norm), direction, params, inner)
        return update._replace(state={"inner": update.state, "memory": memory})

    def _momentum(self, of: Compressed, gradient: PyTree, state: PyTree) -> tuple[PyTree, PyTree]:
        """Mean over the devices of what their gradients make of the momentum, and the errors left."""
        values, structure = jax.tree.flatten(gradient)
        before = jax.tree.leaves(state["inner"]["transformation"].mu)
        b1 = _moments(of).b1
        mine = [b1 * m + (1 - b1) * of.count * g for m, g in zip(before, values, strict=True)]
        result, memory = list(mine), []
        for places, errors in zip(_kinds([axes.varying(m) for m in mine]), state["memory"], strict=True):
            group = [mine[i] for i in places]
            total, lost = _sum_of_signs(_line(group, of.count), [e.own for e in errors], of.count)
            memory.append(_renewed(errors, lost))
            for i, piece in zip(places, _pieces(total / of.count, group), strict=True):
                result[i] = piece
        return jax.tree.unflatten(structure, result), memory

    def memory(self, of: Compressed, gradients: list[Gradient]) -> PyTree:
        """See `Method`."""
        memory = []
        for places in _kinds([g.names for g in gradients]):
            like = gradients[places[0]]
            size = _filled_up(sum(math.prod(gradients[i].shape) for i in places), of.count)
            names = (DATA, *like.names)
            memory.append([of.zeros((size,), like, names), of.zeros((size // of.count,), like, names)])
        return memory


def _gradients(layout: Layout, params: PyTree) -> list[Gradient]:
    pairs = zip(layout.leaves, jax.tree.leaves(params), strict=True)
    return [Gradient(layout.local_shape(leaf, p.shape), p.dtype, layout.own(leaf)) for leaf, p in pairs]


def _is_thin(shape: tuple[int, ...], rank: int) -> bool:
    """Whether two thin matrices are less than the array."""
    rows, columns = matrix_shape(shape)
    return min(rows, columns) > rank and (rows + columns) * rank < rows * columns


def _numbers_sent(shape: tuple[int, ...], rank: int) -> int:
    return sum(matrix_shape(shape)) * rank if _is_thin(shape, rank) else math.prod(shape)


def _moments(of: Compressed) -> Moments:
    assert of.inner.moments is not None, "compressed() takes Adam only"
    return of.inner.moments


def _adams_direction(momentum: Array, variance: Array, shares: tuple[Array, Array], eps: float) -> Array:
    """Both moments over the `shares` that their averages have seen of themselves; arXiv:1412.6980, algorithm 1."""
    first, second = (share.astype(momentum.dtype) for share in shares)
    return (momentum / first) / (jnp.sqrt(variance / second) + eps)


def _sum_of_signs(line: Array, errors: list[Array], count: int) -> tuple[Array, list[Array]]:
    """Approximate sum of the devices' lines, the same on all, and what was lost here on the way there and back."""
    message = line + errors[0]
    bits, scales = _signs(message)
    shares = jax.lax.all_to_all((bits.reshape(count, -1), scales.reshape(count, -1)), DATA, 0, 0)
    added = jnp.sum(jax.vmap(_numbers)(*shares), axis=0) + errors[1]
    back, sizes = _signs(added)

    def in_place(part: Array) -> Array:
        """This device's part among zeros: summed over devices it is a gathering whose result all share."""
        return jnp.zeros((count, *part.shape), part.dtype).at[jax.lax.axis_index(DATA)].set(part).reshape(-1)

    whole = jax.lax.psum((in_place(back), in_place(sizes)), DATA)
    return _numbers(*whole), [message - _numbers(bits, scales), added - _numbers(back, sizes)]


def _signs(line: Array) -> tuple[Array, Array]:
    """One bit per number, and the mean size in each block."""
    return jnp.packbits(line >= 0), jnp.mean(jnp.abs(line.reshape(-1, BLOCK)), axis=1)


def _numbers(bits: Array, scales: Array) -> Array:
    signs = 2 * jnp.unpackbits(bits).astype(scales.dtype) - 1
    return (signs.reshape(-1, BLOCK) * scales[:, None]).reshape(-1)


def _line(values: Sequence[Array], count: int) -> Array:
    """All numbers of some arrays in one, filled up so that blocks divide over the devices."""
    line = jnp.concatenate([v.reshape(-1) for v in values])
    return jnp.pad(line, (0, _filled_up(line.size, count) - line.size))


def _filled_up(size: int, count: int) -> int:
    """The next length whose blocks divide over the devices."""
    return size + -size % (BLOCK * count)


def _pieces(line: Array, like: Sequence[Array]) -> list[Array]:
    ends = list(itertools.accumulate(v.size for v in like))
    return [p.reshape(v.shape) for p, v in zip(jnp.split(line, ends)[:-1], like, strict=True)]


def _kinds(names: Sequence[Any]) -> list[list[int]]:
    """Places of equal entries, in the order of their first ones."""
    found: dict[Any, list[int]] = {}
    for i, kind in enumerate(names):
        found.setdefault(kind, []).append(i)
    return list(found.values())


def _renewed(old: list[PerDevice], values: Sequence[Array]) -> list[PerDevice]:
    return [PerDevice.of(value, kept.names) for kept, value in zip(old, values, strict=True)]


def _filled(lines: PerDevice, value: Array) -> PerDevice:
    """The same value on every device."""
    return PerDevice(lines.lines + value.astype(lines.lines.dtype), lines.names)


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """The most nearly square grouping of an array's axes into two."""
    splits = [(math.prod(shape[:i]), math.prod(shape[i:])) for i in range(len(shape) + 1)]
    return min(splits, key=sum)


_METHODS: dict[str, Method] = {"powersgd": PowerSGD(), "one_bit": OneBitAdam()}

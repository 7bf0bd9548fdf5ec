"""Which axis of a user's array is which: `(sample, time, x, y, z, channel)`, time and channel where present."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sciml.errors import DataError

TIME, CHANNEL = "time", "channel"
SPACE = ("x", "y", "z")


@dataclass(frozen=True)
class Space:
    """Names and sizes of the space axes, and the number of times if it is known."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    times: int | None = None

    def fits(self, axes: tuple[str, ...], shape: tuple[int, ...]) -> bool:
        """Whether `axes` can be the axes of `shape`; a channel axis has any size, an unknown time too."""
        known = {**dict(zip(self.axes, self.sizes, strict=True)), TIME: self.times}
        sizes = [known.get(axis) for axis in axes]
        return len(axes) == len(shape) and all(a in (None, b) for a, b in zip(sizes, shape, strict=True))

    def readings(self, shape: tuple[int, ...]) -> list[tuple[str, ...]]:
        """All ways to read the shape of one sample: a scalar, or space with time before and channel after."""
        around = [((), ()), ((TIME,), ()), ((), (CHANNEL,)), ((TIME,), (CHANNEL,))] if self.axes else []
        candidates = [(), *((*before, *self.axes, *after) for before, after in around)]
        candidates += [(TIME,)] if self.times is not None else []
        return [axes for axes in dict.fromkeys(candidates) if self.fits(axes, shape)]


def find_space(
    coordinates: Mapping[str, int],
    inputs: Mapping[str, tuple[int, ...]],
    outputs: Mapping[str, tuple[int, ...]],
) -> Space:
    """Space axes from the coordinates given (axis -> size), or else from the first field there is.

    `inputs` and `outputs` are shapes of one sample. Raises DataError for more than three space axes.
    """
    times = coordinates.get(TIME)
    declared = {axis: n for axis, n in coordinates.items() if axis not in (TIME, CHANNEL)}
    if declared:
        return Space(tuple(declared), tuple(declared.values()), times)
    name, shape = next(((n, s) for n, s in (*inputs.items(), *outputs.items()) if s), ("", ()))
    if name in outputs and times is not None and shape[:1] == (times,):
        shape = shape[1:]
    if len(shape) > len(SPACE):
        raise DataError(
            f"{name} has {len(shape)} axes after the sample axis",
            expected="at most three space axes (x, y, z) unless coordinates say which axes there are",
            got=f"shape of one sample {shape}",
            fix='coordinates={"time": [...], "x": [...], "y": [...]}',
        )
    return Space(SPACE[: len(shape)], shape, times)


def axes_of(name: str, shape: tuple[int, ...], space: Space, stated: tuple[str, ...] | None) -> tuple[str, ...]:
    """Axis names of one sample of `name`; `stated` are the user's. Raises DataError when none or several fit."""
    if stated is not None:
        return _stated(name, shape, space, tuple(stated))
    fitting = space.readings(shape)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        sizes = ", ".join(f"{axis}: {n}" for axis, n in zip(space.axes, space.sizes, strict=True))
        times = f"time: {space.times}, " if space.times is not None else "[time, ] "
        raise DataError(
            f"the shape of {name} does not fit",
            expected=f"(sample, {times}{sizes}[, channel]) or (sample,)",
            got=f"(sample, {', '.join(map(str, shape))})",
            reason="transposed axes (MATLAB files come reversed), another grid, or a missing sample axis",
            fix="numpy.moveaxis the array into this order, or state axes and coordinates",
        )
    raise DataError(
        f"the axes of {name} can be read in {len(fitting)} ways",
        expected="one reading",
        got="; ".join(str(axes) for axes in fitting) + f" for shape {shape}",
        reason="the number of times or channels equals a grid size",
        fix=f'axes={{"{name}": {fitting[0]}}}',
    )


def _stated(name: str, shape: tuple[int, ...], space: Space, axes: tuple[str, ...]) -> tuple[str, ...]:
    in_order = TIME not in axes[1:] and CHANNEL not in axes[:-1] and len(set(axes)) == len(axes)
    if not in_order or not space.fits(axes, shape):
        known = dict(zip(space.axes, space.sizes, strict=True))
        raise DataError(
            f"the axes stated for {name} do not fit",
            expected=f"{len(shape)} axes for shape {shape}: time first, channel last, space as {known}",
            got=axes,
            fix="list the axes after the sample axis, in the order of the array",
        )
    return axes

"""Errors and spectra of fields on grids; plain numpy, float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sciml.errors import DataError


def relative_l2(prediction: ArrayLike, truth: ArrayLike) -> float:
    """||prediction - truth|| / ||truth|| over all entries."""
    return float(sample_errors(np.asarray(prediction)[None], np.asarray(truth)[None])[0])


def sample_errors(prediction: ArrayLike, truth: ArrayLike) -> np.ndarray:
    """Relative L2 error of each sample (first axis): shape (samples,).

    A sample whose truth is zero has the absolute norm of its error. Raises DataError for unequal shapes.
    """
    p, t = np.asarray(prediction, float), np.asarray(truth, float)
    if p.shape != t.shape:
        raise DataError("prediction and truth differ in shape", expected=t.shape, got=p.shape)
    norm = np.linalg.norm(t.reshape(len(t), -1), axis=1)
    error = np.linalg.norm((p - t).reshape(len(t), -1), axis=1)
    return error / np.where(norm > 0, norm, 1.0)


def spread(values: ArrayLike) -> dict[str, float]:
    """Mean, median, 95th percentile and maximum of per-sample errors."""
    v = np.asarray(values, float)
    return {
        "mean": float(v.mean()),
        "median": float(np.median(v)),
        "p95": float(np.quantile(v, 0.95)),
        "max": float(v.max()),
    }


def radial_spectrum(field: ArrayLike, lengths: Sequence[float] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Spectral density of a periodic field, summed over shells of equal wavenumber.

    `field` has shape (..., *space) with len(lengths) spatial axes (None: all axes are spatial, length 2 pi);
    leading axes are averaged over. `lengths` are in the unit of space, wavenumbers (shells,) in its inverse (the
    angular one). The density (shells,) sums to the mean square of the field. Shells are one smallest
    wavenumber wide and reach to the corners, so nothing is lost.
    """
    values = np.asarray(field, float)
    sizes = [2 * np.pi] * values.ndim if lengths is None else [float(length) for length in lengths]
    axes = tuple(range(values.ndim - len(sizes), values.ndim))
    shape = tuple(values.shape[a] for a in axes)
    power = np.abs(np.fft.fftn(values, axes=axes) / np.prod(shape)) ** 2
    power = power.reshape(-1, *shape).mean(axis=0)
    waves = [2 * np.pi / length * np.fft.fftfreq(n, 1.0 / n) for n, length in zip(shape, sizes, strict=True)]
    radius = np.sqrt(sum(k**2 for k in np.meshgrid(*waves, indexing="ij")))
    width = min(2 * np.pi / length for length in sizes)
    shell = np.rint(radius / width).astype(int)
    density = np.bincount(shell.ravel(), weights=power.ravel())
    return width * np.arange(len(density)), density

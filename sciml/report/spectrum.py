"""Energy spectrum of a field on a uniform grid, summed over shells of equal wavenumber."""

from __future__ import annotations

import numpy as np


def energy_spectrum(
    values: np.ndarray, axes: tuple[np.ndarray, ...], *, periodic: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Wavenumbers k (cycles per box, of the longest side) and the energy in each shell of width one.

    By Parseval's theorem the energies of a periodic field, its mean value (k = 0) included, add up to half its
    mean square, as far as shells are complete. A bounded field is first freed of its mean and multiplied with a
    Hann window, since its ends do not meet: its spectrum tells scales apart but does not add up.

    Args:
        values: real, shape (*space).
        axes: uniform coordinates along each axis, in the field's own length unit.
        periodic: False for a field on a bounded box.
    """
    field = np.nan_to_num(np.asarray(values, dtype=float))
    if not periodic:
        field = field - field.mean()
        for axis, size in enumerate(field.shape):
            window = np.hanning(size) if size > 2 else np.ones(size)
            field = field * window.reshape([-1 if a == axis else 1 for a in range(field.ndim)])
    energy = 0.5 * np.abs(np.fft.fftn(field) / field.size) ** 2
    lengths = [abs(axis[1] - axis[0]) * len(axis) if len(axis) > 1 else 1.0 for axis in axes]
    cycles = [
        np.fft.fftfreq(n, d=1.0 / n) * max(lengths) / length for n, length in zip(field.shape, lengths, strict=True)
    ]
    radius = np.sqrt(sum(np.meshgrid(*(k**2 for k in cycles), indexing="ij")))
    shell = np.rint(radius).astype(int)
    # Corners of the box hold incomplete shells: everything beyond the smallest Nyquist number is left out.
    highest = int(min(np.abs(k).max() for k in cycles))
    sums = np.bincount(shell.ravel(), weights=energy.ravel(), minlength=highest + 1)[: highest + 1]
    return np.arange(highest + 1), sums

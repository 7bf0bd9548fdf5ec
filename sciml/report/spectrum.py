"""Spectrum of a field as it is drawn: over whole wavenumbers, with the ends of a bounded field brought together."""

from __future__ import annotations

import numpy as np

from sciml.metrics import radial_spectrum


def drawn_spectrum(
    values: np.ndarray, axes: tuple[np.ndarray, ...], *, periodic: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Wavenumbers 1, 2, ... (cycles along the longest side) and the spectral density in each shell.

    A bounded field is first freed of its mean and multiplied with a Hann window, since its ends do not meet: its
    spectrum tells scales apart, but does not sum to the mean square. Shells that the corners of wavenumber space
    hold only in part are left out.

    Args:
        values: real, shape (*space); what is not finite counts as zero.
        axes: uniform coordinates along each axis.
        periodic: False for a field on a bounded box.
    """
    field = np.nan_to_num(np.asarray(values, dtype=float))
    if not periodic:
        field = field - field.mean()
        for axis, size in enumerate(field.shape):
            window = np.hanning(size) if size > 2 else np.ones(size)
            field = field * window.reshape([-1 if a == axis else 1 for a in range(field.ndim)])
    lengths = [abs(axis[1] - axis[0]) * len(axis) if len(axis) > 1 else 1.0 for axis in axes]
    _, density = radial_spectrum(field, lengths)
    complete = int(min(len(axis) // 2 * max(lengths) / length for axis, length in zip(axes, lengths, strict=True)))
    return np.arange(1, complete + 1), density[1 : complete + 1]

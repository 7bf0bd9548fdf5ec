"""Bytes that one device sends in one training step, in closed form; `traffic` counts them in compiled programs.

A ring of g devices that adds or spreads b bytes sends r b per pass, r = (g - 1) / g; an all-reduce is two passes.
Bytes are those of the rows that one device has. With rematerialization what a layer sends in the forward pass is
sent once more.
"""

from __future__ import annotations

__all__ = ["all_to_all_bytes", "expert_bytes", "gpipe_bytes", "one_f_one_b_bytes", "ring_bytes", "tensor_bytes"]


def ring_share(parts: int) -> float:
    """r = (g - 1) / g."""
    return (parts - 1) / parts


def tensor_bytes(activation: float, layers: int, parts: int, remat: bool = False, scales: float = 0.0) -> float:
    """Layers of two pairs of a column-split and a row-split product, each from and to `activation` bytes.

    Per pair one all-reduce of the outputs forward and one of the input gradients backward; `scales` are bytes of
    further inputs of a layer whose gradients are added. With `remat` the first pair's outputs are needed again.
    """
    return layers * 2 * ring_share(parts) * ((5 if remat else 4) * activation + scales)


def gpipe_bytes(state: float, needed: float, stages: int, microbatches: int) -> float:
    """`state`: bytes between two stages, of all microbatches together; `needed`: those of it that are used in the end.

    M + S - 1 portions each way; an all-reduce of what is needed behind the last stage, where every device needs
    it, and one of the gradients of all of `state` before the first stage.
    """
    portions = 2 * (microbatches + stages - 1) / microbatches
    return portions * state + 2 * ring_share(stages) * (state + needed)


def one_f_one_b_bytes(state: float, stages: int, microbatches: int, shared: float) -> float:
    """M + 2S - 2 ticks with a portion of `state` each way, and one all-reduce of the gradients of what is not layers.

    `shared`: bytes of the parameters that every stage has, and of the loss parts.
    """
    ticks = microbatches + 2 * stages - 2
    return 2 * ticks / microbatches * state + 2 * ring_share(stages) * shared


def expert_bytes(buffer: float, layers: int, parts: int, remat: bool = False) -> float:
    """`buffer`: bytes of all experts' buffers for a device's rows, experts x room x width per group.

    Tokens to their experts and back, forward and backward: four all-to-alls per layer.
    """
    return layers * ring_share(parts) * buffer * (6 if remat else 4)


def ring_bytes(pair: float, layers: int, parts: int, remat: bool = False) -> float:
    """`pair`: bytes of the keys and values of a device's tokens.

    Forward g - 1 rotations; backward g - 1 of keys and values and g of their gradients, which must come home.
    """
    rotations = (3 * parts - 2) + (parts - 1 if remat else 0)
    return layers * rotations * pair


def all_to_all_bytes(tokens: float, layers: int, parts: int, remat: bool = False) -> float:
    """`tokens`: bytes of queries, keys, values and results of a device's tokens, each once each way."""
    return layers * ring_share(parts) * tokens * (3 if remat else 2)

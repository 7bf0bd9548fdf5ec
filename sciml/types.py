"""Array type aliases; importing this module switches JAX to 64-bit numbers, which every solver here needs.

It also adds to XLA_FLAGS where they ask for simulated CPU devices, unless they say otherwise. With several threads per
device XLA runs independent loops of one program at the same time: the collectives inside them have one name, so that
devices wait for the wrong partners and stand still. With one, jaxlib before 0.12 needs its YNN matrix products off:
gradients under a pipeline were wrong in one of fifteen runs.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import jax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

jax.config.update("jax_enable_x64", True)
_ONE_THREAD, _NO_YNN = "--xla_cpu_multi_thread_eigen=false", "--xla_cpu_experimental_ynn_fusion_type="


def in_order(flags: str) -> str:
    """XLA_FLAGS under which CPU devices work through a program in its own order."""
    if "xla_cpu_multi_thread_eigen" in flags:
        return flags
    return " ".join([flags, _ONE_THREAD, *([_NO_YNN] if jax.__version_info__ < (0, 12) else [])]).strip()


if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = in_order(os.environ["XLA_FLAGS"])  # read by XLA when the first device is used

PyTree: TypeAlias = Any
Key: TypeAlias = PRNGKeyArray
Scalar: TypeAlias = Float[Array, ""]
register_static = jax.tree_util.register_static

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Key", "PyTree", "Scalar", "register_static"]

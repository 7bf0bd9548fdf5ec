"""Array type aliases; importing this module switches JAX to 64-bit numbers, which every solver here needs.

It also gives simulated CPU devices one thread each, unless XLA_FLAGS say otherwise: they share few cores, and a device
that waits for the others must not hold the threads that these need. Before jaxlib 0.12 the YNN matrix products go with
the threads: they run beside the loop they belong to, and the order of collectives is then left to chance.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import jax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

jax.config.update("jax_enable_x64", True)
_ONE_THREAD, _NO_YNN = "--xla_cpu_multi_thread_eigen=false", "--xla_cpu_experimental_ynn_fusion_type="


def one_thread_each(flags: str) -> str:
    """XLA_FLAGS under which CPU devices that share a machine work with one thread each."""
    if "xla_cpu_multi_thread_eigen" in flags:
        return flags
    return " ".join([flags, _ONE_THREAD, *([_NO_YNN] if jax.__version_info__ < (0, 12) else [])]).strip()


if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = one_thread_each(os.environ["XLA_FLAGS"])  # read by XLA when the first device is used

PyTree: TypeAlias = Any
Key: TypeAlias = PRNGKeyArray
Scalar: TypeAlias = Float[Array, ""]
register_static = jax.tree_util.register_static

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Key", "PyTree", "Scalar", "register_static"]

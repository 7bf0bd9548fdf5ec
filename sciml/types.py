"""Array type aliases; importing this module switches JAX to 64-bit numbers, which every solver here needs.

It also lets simulated CPU devices work through a program in its own order. XLA would run independent loops at the same
time; the collectives inside them have one name, so that devices wait for the wrong partners and stand still.
`--xla_cpu_multi_thread_eigen=true` in XLA_FLAGS keeps XLA's way.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import jax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

jax.config.update("jax_enable_x64", True)
_FLAGS = os.environ.get("XLA_FLAGS", "")  # read when the first device is used
if "xla_force_host_platform_device_count" in _FLAGS and "xla_cpu_multi_thread_eigen" not in _FLAGS:
    os.environ["XLA_FLAGS"] = f"{_FLAGS} --xla_cpu_multi_thread_eigen=false"

PyTree: TypeAlias = Any
Key: TypeAlias = PRNGKeyArray
Scalar: TypeAlias = Float[Array, ""]
register_static = jax.tree_util.register_static

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Key", "PyTree", "Scalar", "register_static"]

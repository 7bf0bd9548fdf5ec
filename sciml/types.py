"""Array type aliases; importing this module switches JAX to 64-bit numbers, which every solver here needs."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

jax.config.update("jax_enable_x64", True)

PyTree: TypeAlias = Any
Key: TypeAlias = PRNGKeyArray
Scalar: TypeAlias = Float[Array, ""]
register_static = jax.tree_util.register_static

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Key", "PyTree", "Scalar", "register_static"]

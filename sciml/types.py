"""Array type aliases; importing this module switches JAX to 64-bit numbers, which every solver here needs."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

jax.config.update("jax_enable_x64", True)

PyTree: TypeAlias = Any
Key: TypeAlias = PRNGKeyArray
Scalar: TypeAlias = Float[Array, ""]

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Key", "PyTree", "Scalar"]

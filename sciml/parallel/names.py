"""Names of the mesh axes, for plans and for recipes, which are read before jax could be loaded."""

from __future__ import annotations

PIPELINE, DATA, FSDP, EXPERT, DOMAIN, TENSOR = "pipeline", "data", "fsdp", "expert", "domain", "tensor"
AXES = (PIPELINE, DATA, FSDP, EXPERT, DOMAIN, TENSOR)
"""The mesh axes, those that talk most last: neighbors in the list of devices share a node."""
ROW_AXES = (DATA, FSDP, EXPERT)
"""Mesh axes over which the rows of a batch are spread; over `domain` too where a model has no grid."""
PORTIONS = ("accumulate", "microbatches")
"""What divides the rows of a device once more."""

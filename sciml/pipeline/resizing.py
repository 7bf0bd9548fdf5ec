"""The same training on fewer or more devices: the batch stays, its portions change."""

from __future__ import annotations

import dataclasses
import math

import jax

from sciml.errors import PeerError
from sciml.launch.job import Job
from sciml.parallel.plan import Plan


def began_with(job: Job, recorded: int = 0) -> int:
    """Devices that a training was laid out for: those of its job, or of an earlier one as its checkpoint tells."""
    return max(recorded, len(jax.devices()) * job.wanted // job.ranks.size)


def resized(plan: Plan, began: int, batch: int) -> Plan:
    """The plan for the devices that there are, of `began` that the training was laid out for.

    The rows of a batch are spread over fewer devices, and each works through its share in more portions, so that the
    batch, the gradient and the memory per device stay. A training that has lost nothing keeps its plan. Raises
    PeerError (80) when the axes other than `data` need more devices than are left.
    """
    devices = len(jax.devices())
    others = _devices(dataclasses.replace(plan, data=1))
    before = began // others if plan.data == -1 else plan.data
    now = min(before, devices // others)
    if devices >= began or now >= before:
        return plan
    if now < 1:
        raise PeerError(
            "too few devices are left for the plan",
            expected=f"{others} for its axes other than data",
            got=f"{devices} of {began}",
            fix="the same command again when the lost ones are back, or a plan with smaller axes",
        )
    now = max(n for n in range(1, now + 1) if before % n == 0 or batch % (n * plan.accumulate) == 0)
    least = math.ceil(before * plan.accumulate / now)
    fitting = [a for a in range(least, max(batch // now, least) + 1) if batch % (now * a) == 0]
    return dataclasses.replace(plan, data=now, accumulate=fitting[0] if fitting else least)


def _devices(plan: Plan) -> int:
    return math.prod(getattr(plan, name, 1) for name in ("data", "fsdp", "tensor", "pipeline", "expert", "domain"))

"""What machines can do: arithmetic, memory, and the links between devices; from data sheets, or measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from sciml.errors import ConfigError

GB, TERA, MICRO = 1e9, 1e12, 1e-6
AWAY = 0.8
"""Part of a link's nominal bandwidth that large messages reach."""


@final
@dataclass(frozen=True)
class Link:
    """Between devices: seconds before a message moves, and bytes per second that one device sends."""

    latency: float
    bandwidth: float

    def seconds(self, sent: float, messages: float, hops: float) -> float:
        """Of messages with `sent` bytes together, each over so many hops one after the other."""
        return messages * hops * self.latency + sent / self.bandwidth


NVLINK_3 = Link(3 * MICRO, AWAY * 300 * GB)
NVLINK_4 = Link(3 * MICRO, AWAY * 450 * GB)
HDR = Link(5 * MICRO, AWAY * 25 * GB)
NDR = Link(5 * MICRO, AWAY * 50 * GB)
PCIE_4 = Link(5 * MICRO, AWAY * 32 * GB)
PCIE_5 = Link(5 * MICRO, AWAY * 64 * GB)
SHARED_MEMORY = Link(30 * MICRO, 2 * GB)
ETHERNET = Link(50 * MICRO, AWAY * 1.25 * GB)


@final
@dataclass(frozen=True)
class Hardware:
    """One kind of device, the link between devices of a node (`inside`) and between nodes (`across`, per device).

    peak: operations per second by precision, of dense products. memory, bandwidth: bytes, bytes per second.
    efficiency: part of the peak that products of this size reach. per_step: seconds to start a step.
    """

    name: str
    peak: Mapping[str, float]
    memory: float
    bandwidth: float
    inside: Link
    across: Link
    efficiency: float
    per_step: float
    source: str

    def compute(self, flops: float, moved: float, precision: str) -> float:
        """Seconds: as long as the slower of arithmetic and memory takes."""
        return max(flops / (self.peak[precision] * self.efficiency), moved / self.bandwidth)


def _gpu(name: str, peak: tuple[float, float, float], memory: float, bandwidth: float, links: tuple[Link, Link]):
    rates: dict[str, float] = dict(zip(("float64", "float32", "bfloat16"), (p * TERA for p in peak), strict=True))
    source = "data sheet; 40 % of the peak, 70 % of the memory bandwidth and 80 % of the links are assumed"
    return Hardware(name, rates, memory * GB, 0.7 * bandwidth * GB, *links, 0.4, 50 * MICRO, source)


PRESETS: Mapping[str, Hardware] = {
    "a100": _gpu("A100 80 GB, NVLink 3, InfiniBand HDR", (19.5, 19.5, 312), 80, 2039, (NVLINK_3, HDR)),
    "a100-pcie": _gpu("A100 80 GB, PCI Express 4, InfiniBand HDR", (19.5, 19.5, 312), 80, 1935, (PCIE_4, HDR)),
    "h100": _gpu("H100 SXM 80 GB, NVLink 4, InfiniBand NDR", (67, 67, 989), 80, 3350, (NVLINK_4, NDR)),
    "h100-pcie": _gpu("H100 80 GB, PCI Express 5, InfiniBand NDR", (51, 51, 756), 80, 2000, (PCIE_5, NDR)),
    "h200": _gpu("H200 SXM 141 GB, NVLink 4, InfiniBand NDR", (67, 67, 989), 141, 4800, (NVLINK_4, NDR)),
    "cpu": Hardware(
        "one core of a CPU",
        {"float64": 20 * GB, "float32": 40 * GB, "bfloat16": 20 * GB},
        4 * GB,
        5 * GB,
        SHARED_MEMORY,
        ETHERNET,
        0.4,
        200 * MICRO,
        "orders of magnitude; `measured` is better",
    ),
}
"""Known machines; float32 without the shortened products (TF32) of the tensor cores."""
MEASURED = "measured"
KINDS: Mapping[str, str] = {
    "A100-PCIE": "a100-pcie",
    "A100 80GB PCIe": "a100-pcie",
    "A100": "a100",
    "H100 PCIe": "h100-pcie",
    "H100": "h100",
    "GH200": "h100",
    "H200": "h200",
}
"""Part of the name that a device gives itself -> preset, the nearest one for rarer kinds; the first match counts."""


def preset_of(kind: str) -> Hardware | None:
    """The preset of a device by the name that it gives itself (`device_kind`); None for an unknown one."""
    return next((PRESETS[name] for part, name in KINDS.items() if part in kind), None)


def hardware(name: str) -> Hardware:
    """A preset by name; ConfigError for an unknown one."""
    if name not in PRESETS:
        raise ConfigError(
            f"unknown hardware {name!r}",
            expected=" | ".join((*PRESETS, MEASURED)),
            got=name,
            fix=f"--hardware {MEASURED}   # times the devices of this machine",
        )
    return PRESETS[name]

"""The devices that are here as `Hardware`: products and collectives timed for three sizes, kept in the user's cache."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from sciml.parallel.hardware import MEASURED, PRESETS, Hardware, Link
from sciml.types import Array

SIZES = (2**10, 2**14, 2**18)
"""Numbers per device in a message."""
REPEATS = 7
FORMAT = 1
PRODUCTS = {"float64": 512, "float32": 768, "bfloat16": 512}


def cache_file() -> Path:
    """Where the times of devices of this kind and number are kept."""
    devices = jax.devices()
    kind = f"{FORMAT} {devices[0].device_kind} {len(devices)} {jax.process_count()} {os.cpu_count()} {jax.__version__}"
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "sciml" / "hardware" / f"{hashlib.sha256(kind.encode()).hexdigest()[:16]}.json"


def measured() -> Hardware:
    """What these devices do; timed at the first call (seconds), then read from the cache. Delete the file to repeat."""
    path = cache_file()
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        links = Link(*known.pop("inside")), Link(*known.pop("across"))
        return Hardware(**known, inside=links[0], across=links[1])
    except (OSError, ValueError, TypeError, KeyError):
        pass
    found = _measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    text["inside"], text["across"] = (dataclasses.astuple(link) for link in (found.inside, found.across))
    partial.write_text(json.dumps(text, indent=1), encoding="utf-8")
    os.replace(partial, path)
    return found


def _measure() -> Hardware:
    devices = jax.devices()
    peak = {kind: _products(kind, n) for kind, n in PRODUCTS.items()}
    link = _link() if len(devices) > 1 else PRESETS["cpu"].inside
    start = _seconds(jax.jit(lambda x: x + 1), jnp.zeros(()))
    stats = devices[0].memory_stats() or {}
    memory = float(stats.get("bytes_limit", 0)) or _host_memory() / len(devices)
    name = f"{len(devices)} x {devices[0].device_kind}, {MEASURED}"
    source = "timed here: dense products, copies, and three sizes of each collective; one link for all axes"
    return Hardware(name, peak, memory, _copies(), link, link, 1.0, start, source)


def _host_memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _products(kind: str, n: int) -> float:
    """Operations per second, all devices busy: simulated ones share the cores."""
    devices = jax.devices()
    mesh = jax.make_mesh((len(devices),), ("all",), axis_types=(AxisType.Auto,))
    x = jax.device_put(np.ones((len(devices), n, n), kind), NamedSharding(mesh, P("all")))
    function = jax.jit(jax.shard_map(lambda a: a @ a, mesh=mesh, in_specs=P("all"), out_specs=P("all")))
    return 2.0 * n**3 / _seconds(function, x)


def _copies() -> float:
    """Bytes read and written per second."""
    x = jnp.ones(2**21)
    return 2.0 * x.nbytes / _seconds(jax.jit(lambda a: a + 1), x)


def _link() -> Link:
    """Latency and bandwidth that fit the median times of all collectives best, in the units of `Link.seconds`."""
    devices = jax.devices()
    count = len(devices)
    mesh = jax.make_mesh((count,), ("all",), axis_types=(AxisType.Auto,))
    hops, share, rows, seconds = 2 * np.log2(count), (count - 1) / count, [], []
    pairs = [(i, (i + 1) % count) for i in range(count)]
    kinds: dict[str, tuple[Callable[[Array], Array], float]] = {
        "all-reduce": (lambda a: jax.lax.psum(a, "all"), 2 * share),
        "all-gather": (lambda a: jax.lax.all_gather(a, "all", tiled=True), count * share),
        "reduce-scatter": (lambda a: jax.lax.psum_scatter(a, "all", tiled=True), share),
        "all-to-all": (lambda a: jax.lax.all_to_all(a, "all", 0, 0, tiled=True), share),
        "permute": (lambda a: jax.lax.ppermute(a, "all", pairs), 1.0),
    }
    for function, factor in kinds.values():
        for size in SIZES:
            size += -size % count
            x = jax.device_put(np.ones(count * size, np.float32), NamedSharding(mesh, P("all")))
            options: dict[str, Any] = {"in_specs": P("all"), "out_specs": P("all"), "check_vma": False}
            seconds.append(_seconds(jax.jit(jax.shard_map(function, mesh=mesh, **options)), x))
            rows.append((hops, factor * size * 4))
    matrix, times = np.array(rows), np.array(seconds)
    weights = 1 / times  # relative errors: small messages count as much as large ones
    (latency, per_byte), *_ = np.linalg.lstsq(matrix * weights[:, None], times * weights, rcond=None)
    return Link(float(max(latency, 1e-7)), float(1 / max(per_byte, 1e-13)))


def _seconds(function: Callable[[Any], Any], x: Any) -> float:
    """Median of a few calls."""
    jax.block_until_ready(function(x))
    times = []
    for _ in range(REPEATS):
        before = time.perf_counter()
        jax.block_until_ready(function(x))
        times.append(time.perf_counter() - before)
    return float(np.median(times))

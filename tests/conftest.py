"""Settings that every test shares; they must stand before the first import of jax.

Eight simulated CPU devices, and a compilation cache that outlives the run (JAX_COMPILATION_CACHE_DIR).
They are set through the environment, so that processes started by a test (`sciml run ...`) get the same.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SIMULATED = (
    "--xla_force_host_platform_device_count=8",
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds=120",  # on a loaded machine some devices are late
    "--xla_cpu_collective_call_terminate_timeout_seconds=300",
)
REPOSITORY = Path(__file__).resolve().parent.parent


def _prepare_environment() -> None:
    """Environment of jax, for this process and its children; what the caller has set wins."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_force_host_platform_device_count" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {' '.join(SIMULATED)}".strip()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sciml-tests" / "jax"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does: the last bits depend on it
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("MPLCONFIGDIR", str(Path(tempfile.gettempdir()) / "sciml-tests-matplotlib"))


_prepare_environment()
importlib.import_module("sciml.types")  # 64-bit numbers, the package's own doing


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout that holds these tests."""
    return REPOSITORY


@pytest.fixture
def key():
    """A jax random key, the same in every test."""
    import jax

    return jax.random.key(0)


@pytest.fixture
def strict_dtypes() -> Iterator[None]:
    """No silent change of dtype inside the test: `pytestmark = pytest.mark.usefixtures("strict_dtypes")`.

    Not for all tests, because optax itself mixes integers and floats.
    """
    import jax

    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def no_recompilation():
    """Context manager: jax compiles nothing inside it.

    >>> with no_recompilation():
    ...     step(state, batch)
    """
    from compilation import no_recompilation

    return no_recompilation

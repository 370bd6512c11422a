"""Eight simulated devices for every test of the laboratory, and the TPU compiler behind its compile cache."""

import functools
import os

import jax
import pytest

from scalingbook_lab import devices
from tests.core import repeatable as repeatable
from tools.compiled import compile_cache as compile_cache

devices.simulate(8)  # before JAX starts: each test process has its own
# Values and collectives are what is tested, and fast machine code for toys took a third of the time.
jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True)
def as_quick_in_its_processes(monkeypatch):
    """Processes that a test starts compile without optimizations, as this one does."""
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")


@pytest.fixture(scope="session")
def tpu():
    """Compiles for a TPU slice; the same program is compiled once per session."""
    from scalingbook_lab.compiler import aot

    if not aot.available():
        if os.environ.get("CI"):
            pytest.fail(aot.why_not())
        pytest.skip(aot.why_not())
    return functools.cache(_compile)


@pytest.fixture(scope="session")
def cpu():
    """Compiles for the simulated devices."""
    return functools.cache(_compile)


def _compile(fn, *arrays, **how):
    from scalingbook_lab.compiler import aot

    return aot.compile(fn, *arrays, **how)

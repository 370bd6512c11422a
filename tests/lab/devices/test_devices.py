"""Simulated devices must be requested before JAX starts, and the result describes the devices."""

import subprocess
import sys

import jax
import pytest

from scalingbook_lab import devices

TOO_LATE = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
jax.devices()
from scalingbook_lab import devices
try:
    devices.simulate(8)
except RuntimeError as error:
    print(error)
"""
AFTER_IMPORT = """
import jax
from scalingbook_lab import devices
print(devices.simulate(4))
print(devices.simulate(4))
"""
STAND_IN = """
import os
os.environ["JAX_PLATFORMS"] = "real,cpu"
from jax._src import xla_bridge
from jaxlib import xla_client
made = lambda: xla_client.make_cpu_client(num_devices=COUNT)
xla_bridge.register_backend_factory("real", made, priority=1000)
from scalingbook_lab import devices
from scalingbook_lab.compiler import aot, sharding
devices.simulate(8)
import jax
import jax.numpy as jnp
real, cpus = set(jax.devices()), set(jax.devices("cpu"))
ones = jnp.ones((64, 64), jnp.bfloat16)
split = sharding.place(ones, "A[I_X, J_Y]", sharding.mesh(X=4, Y=2))
product = aot.compile(jnp.matmul, "A[I, J_X]", "B[J_X, K]", mesh=dict(X=8), I=64, J=64, K=64)
summed = aot.compile(jnp.sum, "A[I]", I=8).run(ones[0, :8])
def of(x): return "real" if x.sharding.device_set <= real else "cpu" if x.sharding.device_set <= cpus else "?"
placed = jax.device_put(ones, jax.devices()[0]) * 2
print(*map(of, (ones, split, jnp.sin(split) + 1, product.run(ones, split), summed, placed)))
"""


def run(code):
    """The output of a fresh interpreter, since JAX starts once per process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr


def test_simulating_after_jax_started_says_to_restart():
    (line,), _ = run(TOO_LATE)
    assert "restart the kernel and run this cell first: devices.simulate(8)" in line


def test_simulate_works_after_the_import_and_twice():
    lines, noise = run(AFTER_IMPORT)
    assert lines[0] == lines[1]
    assert lines[0].startswith("4 ")
    assert noise == ""


def test_the_tests_run_on_eight_devices():
    told = devices.simulate(8)
    assert len(devices.get(8)) == told.count == 8
    assert ("simulated" in str(told)) == (told.platform == "cpu")


def test_requesting_too_many_devices_is_an_error():
    with pytest.raises(RuntimeError, match="restart the kernel"):
        devices.get(1000)


def test_real_devices_are_preferred_where_there_are_enough(monkeypatch):
    class Tpu:
        platform, device_kind = "tpu", "TPU v5 lite"

    cpus, tpus = jax.devices("cpu"), [Tpu()] * 4
    monkeypatch.setattr(jax, "devices", lambda kind=None: cpus if kind == "cpu" else tpus)
    assert devices.get(4) == cpus[:4]  # not half of a demo here and half there
    assert devices.get(8) == cpus
    assert devices.describe(devices.get(8)).simulated
    tpus *= 2
    assert devices.get(4) == tpus[:4]
    assert str(devices.describe(devices.get(4))) == "4 real TPU devices (TPU v5 lite)"


@pytest.mark.parametrize(("count", "used"), [(1, "cpu"), (4, "cpu"), (8, "real")])
def test_simulated_devices_are_used_where_real_ones_are_too_few(count, used):
    """A second CPU client of JAX plays the accelerator: values are compared on one kind of device."""
    lines, _ = run(STAND_IN.replace("COUNT", str(count)))
    assert lines == [" ".join([used] * 5 + ["real"])]

"""Timing waits for results, repeats calls and is compared with rooflines. No test depends on speed."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lab.compiler import sharding
from scalingbook_lab.devices import Devices, measure
from scalingbook_lab.devices.measure import Machine, Timing
from scalingbook_lib.notation import Mesh
from scalingbook_lib.roofline import Roofline

ONE_CPU = Devices("cpu", "cpu", 1, False)
TIMING = Timing(2e-3, 1.9e-3, 2.2e-3, 1.8e-3, 11, 4, ONE_CPU)


def test_timing_waits_for_results_and_repeats_calls():
    calls = []

    def fn(x):
        calls.append(1)
        return x + 1

    timing = measure.time(fn, jnp.ones(4), samples=5, min_sample_s=1e-4)
    assert timing.samples == 5
    assert len(calls) >= 1 + 1 + 5 * timing.calls  # warm-up, calibration, samples
    assert 0 < timing.best_s <= timing.low_s <= timing.median_s <= timing.high_s
    assert timing.device.count == 1
    assert timing.meaningful


def test_a_short_function_is_called_many_times_per_sample(monkeypatch):
    now = 0.0  # on a busy machine one call may take as long as a sample; by this clock each takes 1 µs

    def tiny(x):
        nonlocal now
        now += 1e-6
        return x

    monkeypatch.setattr(measure, "clock", SimpleNamespace(perf_counter=lambda: now))
    timing = measure.time(tiny, jnp.ones(2), samples=2)
    assert 2000 <= timing.calls <= 4002
    assert timing.median_s == pytest.approx(1e-6)


def test_simulated_devices_give_no_meaningful_time():
    x = sharding.place(jnp.ones((8, 8)), "A[I_X, J]", Mesh(X=8))
    timing = measure.time(jax.jit(lambda a: a + 1), x, samples=2, min_sample_s=0)
    assert timing.device.simulated == (jax.devices()[0].platform == "cpu")
    assert ("means nothing" in str(timing)) == timing.device.simulated


def test_a_time_is_compared_with_its_roofline():
    bound = Roofline(flops=1e9, bytes=1e6, flops_per_s=1e12, bytes_per_s=1e11)
    beside = TIMING.beside(bound)
    assert beside.fraction == bound.lower_s / TIMING.median_s == 0.5
    assert beside.flops_per_s == 5e11
    assert beside.bytes_per_s == 5e8
    assert str(beside).endswith("the roofline says 1 ms, compute-bound: 50% of it attained")
    assert TIMING.spread == pytest.approx(0.15)


def test_a_measured_machine_has_a_roofline():
    machine = Machine(ONE_CPU, flops_per_s=80e9, bytes_per_s=20e9)
    assert machine.ridge == 4
    product = machine.matmul(B=64, D=2048, F=512)
    assert product.flops == 2 * 64 * 2048 * 512
    assert product.bytes == 4 * (64 * 2048 + 2048 * 512 + 64 * 512)
    assert str(machine) == "CPU: 80 GFLOPs/s in fp32 and 20 GB/s, so compute-bound above 4 FLOPs per byte"


def test_this_machine_can_be_measured():
    machine = measure.machine(size=128, stream_bytes=2**20)
    assert machine.flops_per_s > 0
    assert machine.bytes_per_s > 0
    assert machine.device.count == 1

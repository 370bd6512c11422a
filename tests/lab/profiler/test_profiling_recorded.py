"""The recorded numbers of the exercises on profiling are those of the traces and of the compiler."""

from itertools import groupby

import jax.numpy as jnp
import pytest

from scalingbook_book.chapters.profiling.checks import recorded as r
from scalingbook_lab.compiler import aot, slices, stack
from scalingbook_lib import profiles


def near(seconds):
    return pytest.approx(seconds, rel=1e-4)


def test_the_recorded_times_of_the_gathered_layer():
    seen = profiles.load("sharding-before")
    gather, summed = seen.of("all-")
    assert (seen.breakdown.run_s, seen.breakdown.exposed_s) == (near(r.RUN_S), near(r.EXPOSED_S))
    assert (gather.self_s, gather.share + summed.share) == (near(r.GATHER_S), near(r.COMMS_SHARE))


def test_the_recorded_times_of_six_compilations():
    seen = profiles.load("recompile-before")
    steps = [m for m in seen.host if m.name == "step"]
    assert steps[-1].start_s + steps[-1].duration_s - steps[0].start_s == near(r.STEPS_S)
    first = min(m.start_s for m in seen.compilations)
    assert max(e.end_s for e in seen.events) - first == near(r.FROM_COMPILE_S)
    assert sum(m.duration_s for m in seen.compilations) == near(r.COMPILE_S)
    assert sum(e.duration_s for e in seen.events) == near(r.DEVICE_S)


def test_the_recorded_times_of_twelve_all_reduces():
    seen = profiles.load("serial-before")
    assert (seen.runs, seen.devices) == (r.RUNS, r.DEVICES)
    assert seen.collectives == {"all-reduce over X of 1.05 MB": r.SUMS}
    waited = beyond = total = 0.0
    for same in _sums(seen):
        total += sum(e.duration_s for e in same)
        waited += sum(max(e.start_s for e in same) - e.start_s for e in same)
        beyond += sum(e.duration_s - min(e.duration_s for e in same) for e in same)
    assert (waited / total, beyond / total) == (near(r.WAITING), near(r.BEYOND_SHORTEST))


def _sums(seen):
    """The events of each all-reduce, one per device."""
    sums = sorted((e for e in seen.events if seen.ops[e.op].kind == "collective"), key=lambda e: e.start_s)
    lanes = {}
    for e in sums:
        lanes.setdefault((e.run, e.device), []).append(e)
    for run in range(seen.runs):
        yield from zip(*(lanes[run, device] for device in range(seen.devices)), strict=True)


@pytest.mark.skipif(not aot.available(), reason=slices.why_not() or "")
@pytest.mark.parametrize(("side", "recorded"), [(256, r.MATMUL_256), (1024, r.MATMUL_1024)])
def test_the_recorded_bundles_are_those_of_the_compiler(side, recorded):
    how = {"topology": "v5e:1x1", "B": side, "D": side, "F": side, "llo": True}
    kernel, = stack.of(lambda x, w: jnp.tanh(x @ w), "X[B, D]", "W[D, F]", **how).bundles  # fmt: skip
    if "MATMUL" not in kernel.slots:
        pytest.skip("this libtpu names its slots otherwise")
    slot = kernel.slots.index("MATMUL")
    used = (row[slot] for row in kernel.used)
    assert tuple((slots, len([*same])) for slots, same in groupby(used)) == recorded

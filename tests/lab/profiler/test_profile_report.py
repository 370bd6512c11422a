"""Reports on profiles that are recorded here, on simulated devices: a loop, a wait, and a slow host."""

import shutil
import time

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lab.profiler import lessons, trace
from scalingbook_lib import inspection
from scalingbook_lib.inspection.findings import profiles

LOADING, WAIT_S = "load batch", 0.05


def record(folder, fn, *arguments):
    """Four steps of a compiled function, each after a wait for its batch."""
    compiled = fn.lower(*arguments).compile()
    jax.block_until_ready(compiled(*arguments))
    with trace.recording(compiled, folder=str(folder)):
        for n in range(4):
            with jax.profiler.TraceAnnotation(LOADING):
                time.sleep(WAIT_S)
            with jax.profiler.StepTraceAnnotation("step", step_num=n):
                jax.block_until_ready(compiled(*arguments))
    return compiled


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """The folder of a profile whose microbatches each sum over four devices, and its program."""
    folder = tmp_path_factory.mktemp("logs")
    arrays = lessons._arrays({"W[D, F]": (64, 64), "X[N, B_X, D]": (12, 64, 64)}, 1)
    return folder, record(folder, lessons.accumulate(True), *arrays)


@pytest.mark.parametrize("pattern", ["", "*.xplane.pb", "*.trace.json.gz"])
def test_a_wait_is_named_by_what_the_host_does(loop, pattern):
    folder, _ = loop
    path = next(folder.rglob(pattern)) if pattern else folder
    report = inspection.profile(path)
    assert len(report.steps) == 4
    assert report.mean.host == LOADING
    first = profiles.levers(report)[0]
    assert first.rule == "waiting for the host"
    assert first.saved_s > 0.5 * WAIT_S


def test_collectives_of_a_loop_are_counted_with_and_without_the_program(loop):
    folder, compiled = loop
    bare, named = inspection.profile(folder), inspection.profile(folder, compiled)
    assert (bare.collectives[0].name, round(bare.collectives[0].times)) == ("all-reduce", 12)
    assert named.collectives[0].name.startswith("all-reduce over X of 16.4 kB")
    assert round(named.collectives[0].times) == 12


def test_the_slowest_host_of_a_folder_is_reported(tmp_path):
    """Two hosts of one run: one multiplies matrices that are eight times as large."""
    run = tmp_path / "logs" / "plugins" / "profile" / "one"
    run.mkdir(parents=True)
    square = jax.jit(lambda x: jnp.tanh(x @ x))
    for host, n in (("quick", 128), ("slow", 1024)):
        record(tmp_path / host, square, jnp.ones((n, n)))
        shutil.copy(next((tmp_path / host).rglob("*.xplane.pb")), run / f"{host}.xplane.pb")
    report = inspection.profile(tmp_path / "logs")
    assert [w.name for w in report.workers] == ["slow", "quick"]
    assert report.trace.title == "slow"
    assert "slow computes" in next(f.message for f in profiles.uneven(report))

"""The expected profile of an absent TPU slice: the compiler's order
and cycles, the formulas' times on links.
"""

import pytest

from scalingbook_lab.compiler import aot
from scalingbook_lab.profiler import lessons
from scalingbook_lib import collectives, profiles
from scalingbook_lib.hlo.schedule import ScheduledStep
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Mesh
from scalingbook_lib.profiles.expected import _unrolled
from scalingbook_lib.units import FP32

MESH, SIZES = Mesh(X=2, Y=4), {"I": 8192, "J": 8192, "K": 8192}
WHOLE = (("xla_jf_spmd_threshold_for_windowed_einsum_mib", "1000000"),)  # no collective matmul


def multiply(a, b):
    return a @ b


@pytest.fixture(scope="module")
def pair(tpu):
    def made(options):
        arrays = "A[I_X, J_Y]", "B[J, K_Y]"
        how = {"out": "C[I_X, K_Y]", "mesh": MESH, "topology": "v5e:2x4", "options": dict(options)}
        program = aot.compile(multiply, *arrays, **how, **SIZES)
        return program, profiles.expected(program, "a product")

    return made(WHOLE), made(())


def test_without_overlap_the_run_is_the_sum_of_compute_and_communication(pair):
    (program, serial), _ = pair
    gather = collectives.all_gather(
        2 * 8192 * 8192 // 2, *chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4).axes("Y")
    )
    assert serial.breakdown.exposed_s == pytest.approx(gather.total_s)
    assert serial.breakdown.compute_s == pytest.approx(program.estimated_s)
    assert serial.run_s == pytest.approx(gather.total_s + program.estimated_s)


def test_the_ring_of_a_collective_matmul_is_hidden(pair):
    (_, serial), (program, ring) = pair
    assert ring.breakdown.compute_s == pytest.approx(program.estimated_s)
    assert ring.breakdown.hidden_s > 0
    assert ring.breakdown.exposed_s < serial.breakdown.exposed_s
    assert ring.run_s < serial.run_s


def test_an_expected_trace_says_that_nothing_was_run(pair, tmp_path):
    (_, serial), _ = pair
    said = str(serial)
    assert (
        "expected\nTPU v5e 2x4: cycles estimated by its compiler, transfers by the formulas; nothing was run"
        in said
    )
    again = profiles.load(profiles.save(serial, tmp_path / "expected.json"))
    assert again.provenance == serial.provenance


def test_a_loop_runs_once_per_trip_in_the_expected_trace():
    body = (
        ScheduledStep("compute", "matmul", 5, depth=1),
        ScheduledStep("loop", "2 times:", 0, depth=1),
        ScheduledStep("compute", "copy", 1, depth=2),
    )
    steps = [ScheduledStep("loop", "3 times:", 0), *body, ScheduledStep("compute", "end", 7)]
    assert [s.label for s in _unrolled(steps)] == ["matmul", "copy", "copy"] * 3 + ["end"]


def test_an_expected_trace_needs_the_compilers_estimate(cpu):
    program = cpu(multiply, "A[I, J]", "B[J, K]", mesh=Mesh(X=1), topology=None, I=8, J=8, K=8)
    with pytest.raises(ValueError, match="topology='v5e:2x4'"):
        profiles.expected(program)


def test_the_tpu_compiler_moves_the_all_reduce_out_of_the_loop(tpu):
    """Twelve all-reduces on a CPU are one on a TPU, because XLA:TPU adds the gradients first."""
    arrays, sizes = ("W[D, F]", "X[N, B_X, D]"), {"D": 512, "F": 512, "N": 12, "B": 1024}
    how = {"out": "G[D, F]", "mesh": Mesh(X=4), "topology": "v5e:2x2", "local": True, "dtype": FP32}
    for each in (True, False):
        program = aot.compile(lessons.summed(each), *arrays, **how, **sizes)
        assert program.collectives == {"all-reduce": 1}
        assert profiles.expected(program).breakdown.compute_s == pytest.approx(program.estimated_s)

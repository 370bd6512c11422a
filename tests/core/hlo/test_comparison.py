"""Compares predictions with collectives: agreement in a line, and a reason for each difference."""

import pytest

from scalingbook_lib import hlo, models, sharded_matmul, training
from scalingbook_lib.hlo import Collectives, CompiledCollective, predicted
from scalingbook_lib.machines import chips, slices
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16

MESH = Mesh(X=2, Y=4)
SLICE = chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4)
SMALL = dict.fromkeys("IJK", 2048)


def rows(*made):
    defaults = {"times": 1, "dtype": "bf16", "devices": 4}
    return Collectives(
        tuple(
            CompiledCollective(kind=kind, axes=axes, nbytes=n, **defaults | more)
            for kind, axes, n, more in made
        )
    )


def test_another_strategy_is_recognized_by_name():
    text = "A[I_X, J_Y] · B[J, K] -> C[I_X, K]"
    solution = sharded_matmul.solve(text, SLICE, SMALL, BF16)
    nbytes = solution.named("slice B over Y, all-reduce C over Y").steps[-1].nbytes
    comparison = hlo.compare(solution, rows(("all-reduce", "Y", int(nbytes), {})), MESH)
    (line,) = comparison.lines
    assert "the compiler chose 'slice B over Y, all-reduce C over Y', not 'gather A over Y'" in str(line)
    assert "times as long, network-bound" in str(line)


def test_collectives_on_one_side_only_are_named():
    comparison = hlo.compare(
        {"all-gather X": 4096}, rows(("all-to-all", "X", 1024, {"source": "jit(f)/moe"})), {"X": 4}
    )
    assert [str(line) for line in comparison.differences] == [
        "all-gather over X: 4.1 kB was predicted but is not in the program",
        "all-to-all over X: 1.02 kB was not predicted; it comes from jit(f)/moe",
    ]


def test_an_all_reduce_equals_a_reduce_scatter_and_an_all_gather():
    halves = rows(("reduce-scatter", "X", 4096, {}), ("all-gather", "X", 4096, {}))
    comparison = hlo.compare({"all-reduce X": 4096}, halves, {"X": 4})
    assert "instead of the all-reduce: the same bytes" in str(comparison)
    assert comparison.predicted_bytes == comparison.compiled_bytes


def test_axes_have_no_order_and_overlap_is_reported():
    comparison = hlo.compare(
        {"all-gather YX": 4096}, rows(("all-gather", "XY", 4096, {"overlapped": True})), {"X": 2, "Y": 2}
    )
    assert comparison.agrees
    assert "as predicted, overlapped with other work" in str(comparison)


def test_the_traffic_of_a_training_step_is_a_prediction():
    plan = training.Plan(fsdp=8, microbatch=1)
    traffic = training.traffic(
        models.find("Llama 3 8B"), plan, slices.Slice(chips.V5E, (2, 4)), batch=8, T=2048
    )
    comparison = hlo.compare(traffic, rows(), {"X": 8})
    assert {line.predicted[0] for line in comparison.differences} == {
        ("all-gather", "X"),
        ("reduce-scatter", "X"),
    }
    assert comparison.predicted_bytes == pytest.approx(sum(row.received for row in traffic))


def test_known_differences_of_a_training_step_have_names():
    plan = training.Plan(fsdp=8, dp=2, microbatch=1)
    step = {"batch": 16, "T": 2048, "loop": True}
    traffic = training.traffic(models.find("Llama 3 8B"), plan, slices.Slice(chips.V5E, (4, 4)), **step)
    sums = predicted.read(traffic)
    scattered = sums.pop(predicted.Key("reduce-scatter", "X")).nbytes
    comparison = hlo.compare(
        predicted.on_axes(traffic, X="fsdp", R="data"),
        rows(
            *((key.kind, {"X": "fsdp", "R": "data"}[key.axes], int(n), {}) for key, (_, n) in sums.items()),
            ("all-reduce", "fsdp", int(scattered), {}),
            ("all-gather", "data", 10**10, {"source": "jit(step)/mine"}),
        ),
        {"data": 2, "fsdp": 8},
    )
    assert "≠ summed whole: all-reduce over fsdp: 15 GB, then a slice, for a reduce-scatter" in str(
        comparison
    )
    assert "≠ all-gather over data: 10 GB more than predicted; it comes from jit(step)/mine" in str(
        comparison
    )
    assert [line.rule for line in comparison.differences] == ["summed whole", ""]
    assert comparison.unexplained_bytes == pytest.approx(5e9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "is not a prediction; give a strategy"),
        ([7], "is not a row of a prediction"),
        ({"gather X": 1}, "'all-gather X'"),
    ],
)
def test_other_values_are_refused_as_predictions(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        hlo.compare(given, rows(), {"X": 4})

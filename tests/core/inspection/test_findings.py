"""Every rule finds its fault in a compiled program that has it, and nothing where it is corrected."""

import re
from types import SimpleNamespace

import pytest

from scalingbook_lib.inspection import findings as rules
from scalingbook_lib.inspection.findings.collectives_in_words import runs_in_words
from scalingbook_lib.inspection.steps import WAIT
from scalingbook_lib.inspection.transfer_group import TransferGroup
from tests.core.inspection.conftest import PROGRAMS

MESSAGES = {
    "repeated in a loop": r"An all-gather over the axis data moves the same 8.39 MB in each of 8 iterations",
    "summed in every trip": r"An all-reduce of 16.8 MB over the axis data runs in each of 8 iterations",
    "gathered and mostly unused": r"An all-gather of 537 MB over the axis data runs once, and only 0.098% "
    "of its bytes are used",
    "reduced, then sliced": r"An all-reduce of 4.19 MB over the axis model runs, but each "
    "device uses only 1/4",
    "exposed communication": r"An all-reduce of 4.19 MB over the axis model runs once synchronously: 132 µs "
    "is exposed, 58%",
    "latency-bound collectives": r"An all-reduce over the axis data runs 16 times on at most "
    "4 B. Most of its time",
    "axis across nodes": r"model \(2 devices\) leaves the node, because data is the innermost axis",
    "fp32 collectives": r"An all-reduce over the axis data moves fp32: each device receives \d+ MB per run",
    "replicated state": r"32 MiB of optimizer state \(state\['mu'\]\) is replicated over the axis data, on 4 "
    "devices",
    "not donated": r"updated values for 48 MiB of arguments \(state\['mu'\], state\['w'\]\)",
    "padded arrays": r"bf16\[129,129,129\] takes [\d.]+ MiB instead of 4.094 MiB",
    "memory nearly full": r"The peak of 14.89 GiB is 93% of a device's 16 GiB",
    "recomputed": r"25% of the FLOPs \(137 GFLOPs\) are recomputed",
    "padded matmuls": r"2,048 × 8,192 × 129 is padded \(columns from 129 to 256\): 98% more FLOPs",
    "uneven shards": r"A dimension of 1,030 is padded to 1,032",
    "relayout copies": r"1 kernel only copies or transposes: 1.29 ms, 62% of the step",
    "fp32 matmuls": r"100% of the FLOPs multiply fp32 operands",
    "scores in HBM": r"Attention scores \(f32\[4,4,2048,2048\]\) go through HBM: 537 MB per run",
    "calls to the host": r"The program calls the host once per run",
}


@pytest.mark.parametrize("rule", MESSAGES)
def test_a_rule_finds_its_fault_and_only_where_it_is(program, rule):
    faulty, fixed = (program(rule, faulty=faulty).findings for faulty in (True, False))
    found = [one for one in faulty if one.rule == rule]
    assert found
    assert re.search(MESSAGES[rule], found[0].message)
    assert rule not in {one.rule for one in fixed}


def test_every_rule_has_a_program_with_its_fault(program):
    names = {rule.__name__ for rule in rules.RULES}
    assert len(names) == len(rules.RULES) == len(MESSAGES)
    assert len([*PROGRAMS.glob("*.gz")]) == 2 * len(MESSAGES)


@pytest.mark.parametrize("rule", MESSAGES)
def test_a_finding_says_what_to_change_what_that_saves_and_where_the_book_explains_it(program, rule):
    for one in program(rule, faulty=True).findings:
        assert 0 < one.severity <= 1
        assert one.advice
        assert not one.message.endswith(".")
        assert not one.advice.endswith(".")
        assert one.saved_s <= program(rule, faulty=True).program.run_s


def test_the_most_expensive_finding_is_first_and_a_transfer_is_explained_once(program, step):
    severities = [one.severity for one in step.findings]
    assert severities == sorted(severities, reverse=True)
    rules_ = [one.rule for one in program("gathered and mostly unused", faulty=True).findings]
    assert "exposed communication" not in rules_


def test_a_residual_stream_is_not_an_accumulator(step):
    """Each layer adds a sum over model to the residual stream, which the next layer reads."""
    assert "summed in every trip" not in {one.rule for one in step.findings}


def test_a_gradient_is_not_a_new_value_of_its_weights(program):
    """The gradient has the shape of the weights, which the caller still needs: nothing can be donated."""
    assert "not donated" not in {one.rule for one in program("recomputed", faulty=True).findings}


def test_exposed_collectives_of_several_sizes_are_counted_together():
    def run(nbytes, when, runs=1):
        moved = SimpleNamespace(kind="all-gather", axis_names=("data",), nbytes=nbytes)
        return SimpleNamespace(collective=moved, runs=runs, move=SimpleNamespace(when=when))

    group = TransferGroup((run(8.39e6, WAIT), run(2.1e6, WAIT, 2), run(8.39e6, "partly hidden")))
    said = runs_in_words(group, 3)
    assert said == "All-gathers of up to 8.39 MB over the axis data run 4 times, 3 of them synchronously"
    alike = TransferGroup((run(2.1e6, WAIT, 16),))
    assert runs_in_words(alike, 16) == (
        "An all-gather of 2.1 MB over the axis data runs 16 times synchronously"
    )
    assert runs_in_words(alike, 0).endswith("16 times with too little compute to overlap with")

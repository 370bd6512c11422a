"""What a profile's steps wait for, on the book's recorded mistakes, before and after their corrections."""

import gzip
from dataclasses import replace

import pytest

from scalingbook_lib import inspection
from scalingbook_lib.inspection.findings import profiles
from scalingbook_lib.inspection.profile_report import ProfileReport
from scalingbook_lib.profiles import xplane
from scalingbook_lib.units import si
from tools.environment import ROOT

TRACES = ROOT / "data" / "traces"
H100 = ROOT / "tests" / "core" / "profiles" / "h100"


def reported(name):
    return inspection.profile(TRACES / f"{name}.json")


def rules(report):
    return {one.rule: one for one in profiles.levers(report)}


@pytest.mark.parametrize(
    ("name", "lever", "told"),
    [
        ("serial-before", "exposed collectives", "all-reduce over X of 1.05 MB, 12 times a step"),
        ("sharding-before", "exposed collectives", "all-gather over X of 33.6 MB, once a step"),
        ("input-before", "waiting for the host", "during 'next batch' on the host"),
        ("recompile-before", "compilation", "6 compilations within the profile take 78.3 ms"),
        ("gpu-program", "launch gaps", "31 pauses between the 32 operations of a step, 3.26 µs each"),
        ("gpu-operations", "waiting for the host", "91%"),
    ],
)
def test_the_first_lever_of_a_recorded_mistake_is_the_mistake(name, lever, told):
    first = profiles.levers(reported(name))[0]
    assert first.rule == lever
    assert told in first.message


@pytest.mark.parametrize(
    ("lesson", "lever"),
    [
        ("serial", "exposed collectives"),
        ("sharding", "exposed collectives"),
        ("input", "waiting for the host"),
        ("recompile", "compilation"),
    ],
)
def test_a_correction_takes_time_from_its_lever(lesson, lever):
    before, after = (rules(reported(f"{lesson}-{when}")) for when in ("before", "after"))
    saved = after[lever].saved_s if lever in after else 0.0
    assert saved < 0.5 * before[lever].saved_s


@pytest.mark.parametrize("name", ["serial-before", "layer", "input-before", "gpu-program"])
def test_the_parts_of_every_step_add_up_to_its_time(name):
    for step in reported(name).steps:
        parts = step.compute_s + step.exposed_s + step.launch_s + step.wait_s
        assert parts == pytest.approx(step.duration_s)


def test_steps_follow_each_other_without_a_gap():
    spans = reported("serial-before").spans
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]


def test_every_share_and_lever_is_of_the_same_step_and_leaves_out_the_last():
    report = inspection.profile(H100 / "whole.xplane.pb.gz")
    *whole, last = report.steps
    assert last.wait_s == 0
    assert report.step_s == report.mean.duration_s == pytest.approx(sum(s.duration_s for s in whole) / 2)
    assert f"3 steps of {si(report.step_s, 's')}" in report.summary[0]
    (lever,) = profiles.levers(report)
    assert lever.saved_s == report.mean.wait_s == pytest.approx(sum(s.wait_s for s in whole) / 2)
    assert lever.severity == lever.saved_s / report.step_s
    (worker,) = report.workers
    assert worker.compute_s == pytest.approx(report.mean.compute_s)
    assert sum(s.compute_s for s in whole) / 2 == pytest.approx(worker.compute_s)


def test_a_single_step_is_its_own_average():
    trace = reported("serial-before").trace
    first = min(e.run for e in trace.events)
    single = ProfileReport(trace=replace(trace, events=tuple(e for e in trace.events if e.run == first)))
    assert single.step_s == single.steps[0].duration_s > 0


def test_exposed_collectives_add_up_to_the_exposed_time():
    report = reported("serial-before")
    assert sum(c.exposed_s for c in report.collectives) == pytest.approx(report.mean.exposed_s, rel=0.05)


def test_kernels_of_a_cuda_graph_have_no_gaps_and_the_program_gives_their_rooflines():
    text = gzip.decompress((H100 / "whole.hlo.gz").read_bytes()).decode()
    report = inspection.profile(H100 / "whole.xplane.pb.gz", text)
    assert report.in_graphs == 1
    assert report.gaps.gaps == 0
    assert report.mean.host == "PjitFunction(jit(loop))"
    assert {a.row.op.name for a in report.rooflines if a.row.op.flops} == {
        "gemm_fusion_dot", "gemm_fusion_dot.1", "gemm_fusion_dot.2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-reduce"),
        ("ncclDevKernel_AllGather_RING_LL", "all-gather"),
        ("ncclKernel_ReduceScatter_Sum_float", "reduce-scatter"),
        ("ncclDevKernel_SendRecv", "collective-permute"),
        ("psum.6", "all-reduce"),
        ("all_gather", "all-gather"),
        ("all-gather-start.1", "all-gather"),
        ("nvjet_hsh_128x256", ""),
        ("psumming_fusion", ""),
    ],
)
def test_collectives_of_cuda_graphs_and_of_the_cpu_are_recognized_by_name(name, kind):
    found = xplane.guess_op(
        xplane.ProfiledEvent(
            name=name, module="m", device=0, run=0, start_ns=0, duration_ns=1, line="l", stats={}
        )
    )
    assert (found.moves, found.kind == "collective") == (kind, bool(kind))


def test_a_report_prints_its_levers_with_their_sections():
    text = str(reported("serial-before"))
    assert text.startswith("3 steps of 23.9 ms on 4 CPU devices")
    assert "chapters/profiling.html#profiling-exposed" in text
    assert "step 0: 26.6 ms, waits for collectives" in text

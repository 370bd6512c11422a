"""The report on a training step: times, memory, FLOPs, collectives, notes, and what a bad text is told."""

import json
import re

import pytest

from scalingbook_lib import inspection
from scalingbook_lib.hlo import HloError
from scalingbook_lib.inspection import Limits, mesh_inference, source
from scalingbook_lib.inspection.memory import aliases, padded_bytes

SHORT = """HloModule small, num_partitions=8

ENTRY %main (p: bf16[1024,512]) -> bf16[4096,512] {
  %p = bf16[1024,512] parameter(0)
  ROOT %r = bf16[4096,512] all-gather(%p), replica_groups=[2,4]<=[8], dimensions={0}
}
"""


def test_three_lines_say_the_time_the_memory_and_the_first_finding(step):
    time, memory, found = step.summary
    assert time == (
        "jit_step on TPU v5p 4x4x4, data=16 model=4: estimated 4.17 ms per run, 19% exposed communication"
    )
    assert memory.startswith("Memory 329.3 MiB of 95 GiB per device; 241 GFLOPs of matmuls per device")
    assert found == "5 findings; the first: replicated state"


def test_the_time_of_a_run_is_that_of_its_kernels_and_what_is_exposed(step):
    program = step.program
    kernels = sum(k.seconds for k in program.kernels)
    assert program.run_s == pytest.approx(kernels + program.exposed_s)
    assert sum(t.exposed_s for t in program.transfers) == pytest.approx(program.exposed_s)


def test_collectives_agree_with_the_books_own_reader(step, step_text):
    from scalingbook_lib import hlo

    read = hlo.collectives(step_text, step.program.source.mesh)
    assert sum(t.received_bytes for t in program_transfers(step)) == pytest.approx(read.received_bytes)


def program_transfers(report):
    return report.program.transfers


def test_a_transfer_with_enough_work_beside_it_is_hidden(step):
    schedules = {(t.collective.kind, t.schedule) for t in step.program.transfers}
    assert ("collective-permute", "hidden") in schedules
    assert ("all-gather", "synchronous") in schedules
    assert all(t.exposed_s == 0 for t in step.program.transfers if t.schedule == "hidden" and t.seconds == 0)


def test_recomputation_is_counted_by_jaxs_names(step):
    """Of the two matmuls of a layer, which run three times, the first is computed once more."""
    work = step.program.work
    assert work.flops == 8 * 7 * 2 * (64 * 128 // 16) * 2048 * 8192 // 4
    assert work.recomputed / work.flops == pytest.approx(1 / 7)


def test_the_need_of_a_model_is_compared_with_the_flops_of_the_program(step_text):
    found = inspection.inspect(step_text, model="llama-3-8b", tokens=64 * 128)
    need = found.program.work.need
    assert need
    assert need.device_flops == pytest.approx(6 * 8.03e9 * 64 * 128 / 64, rel=0.25)  # and attention
    assert found.program.work.useful_share == need.device_flops / found.program.work.flops
    with pytest.raises(ValueError, match="--tokens 4Mi"):
        inspection.inspect(step_text, model="llama-3-8b")
    with pytest.raises(ValueError, match="--model"):
        inspection.inspect(step_text, tokens=8)


def test_memory_of_a_text_without_notes_is_estimated_near_what_xla_reports(step, step_text):
    bare = step_text.partition("\n")[2]
    estimated = inspection.inspect(bare, machine="v5p:4x4x4").program.memory
    told = step.program.memory
    assert (told.estimated, estimated.estimated) == (False, True)
    assert estimated.arguments == told.arguments
    assert estimated.outputs == pytest.approx(told.outputs, rel=0.001)
    assert estimated.temporaries == pytest.approx(told.temporaries, rel=0.2)


def test_the_largest_temporary_is_what_the_backward_pass_saves(step):
    first = step.program.memory.largest[0]
    assert (first.type, first.nbytes) == ("bf16[8,4,128,2048]", 16 * 2**20)


def test_every_line_of_python_is_one_of_the_users_file(step):
    lines = {t.line for t in step.program.transfers} | {k.line for k in step.program.kernels} - {""}
    assert {line.partition(":")[0] for line in lines if line} == {"train.py"}


def test_values_are_json_and_name_every_instruction_of_a_collective(step):
    values = json.loads(json.dumps(step.values))
    assert values["mesh"] == {"data": 16, "model": 4}
    assert values["flops"]["device_flops"] == step.program.work.flops
    assert sum(len(c["instructions"]) for c in values["collectives"]) == len(step.program.transfers)


def test_the_report_prints_findings_with_their_sections(step):
    text = str(step)
    assert "1. 256 MiB of optimizer state" in text
    assert "chapters/training.html#training-fsdp" in text


def test_without_a_machine_there_are_no_times_and_everything_else(step_text):
    bare = step_text.partition("\n")[2]
    report = inspection.inspect(bare)
    assert report.program.run_s == 0
    assert report.values["estimated_run_s"] is None
    assert "no times, because no machine is named" in report.summary[0]
    assert len(report.program.transfers) == 24


def test_notes_survive_a_round_trip_without_the_folders_of_a_machine(step):
    again = source.read(source.with_notes(step.program.source))
    assert again == step.program.source
    assert "/" not in again.text.partition("FunctionNames")[0].partition("FileNames")[2]


CONDITIONAL = """HloModule jit_c, num_partitions=4

%moves (a: f32[512,512]) -> f32[512,512] {
  %a = f32[512,512]{1,0} parameter(0)
  ROOT %ar = f32[512,512]{1,0} all-reduce(%a), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%add
}

%copies (b: f32[512,512]) -> f32[512,512] {
  %b = f32[512,512]{1,0} parameter(0)
  ROOT %c = f32[512,512]{1,0} copy(%b)
}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (p: pred[], q: f32[512,512]) -> f32[512,512] {
  %p = pred[] parameter(0)
  %q = f32[512,512]{1,0} parameter(1)
  ROOT %r = f32[512,512]{1,0} conditional(%p, %q, %q), true_computation=%moves, false_computation=%copies
}
"""


def test_of_a_conditional_the_branch_that_moves_counts_and_the_report_says_so():
    """The other branch has a kernel, which moves bytes of HBM alone."""
    report = inspection.inspect(CONDITIONAL, limits=Limits(forbidden=("all-reduce",)))
    (one,) = report.values["collectives"]
    assert one["kind"] == "all-reduce"
    assert any("the conditional" in note for note in report.program.source.notes)
    assert report.broken


@pytest.mark.parametrize(
    ("groups", "mesh"),
    [
        ("[2,4]<=[8]", {"X": 2, "Y": 4}),
        ("[4,2]<=[2,4]T(1,0)", {"X": 2, "Y": 4}),
        ("[1,8]<=[8]", {"X": 8}),
        ("{{0,2},{1,3},{4,6},{5,7}}", {"X": 2, "Y": 2, "Z": 2}),
        ("mesh['data'=4,'model'=2] {'model'}", {"data": 4, "model": 2}),
    ],
)
def test_a_mesh_is_inferred_from_the_groups(groups, mesh):
    found = source.read(SHORT.replace("[2,4]<=[8]", groups))
    assert mesh_inference.infer(found.module, 8) == mesh


def test_a_mesh_with_another_number_of_devices_is_refused():
    with pytest.raises(HloError, match="has 16 devices, but the program was compiled for 8"):
        inspection.inspect(SHORT, mesh={"data": 16})


def test_a_mesh_that_does_not_fit_the_machine_is_noted():
    report = inspection.inspect(SHORT, mesh={"X": 2, "Y": 4}, machine="v5e:4x4")
    assert any("does not fit TPU v5e 4x4" in note for note in report.program.source.notes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the text is empty"),
        ("module @jit_f attributes {} {\n}", "StableHLO"),
        ("// scalingbook: {not json}\n" + SHORT, "delete the line, and give --mesh and --slice"),
        ("HloModule x\nENTRY %main () -> f32[] {\n}", "has no instructions"),
    ],
)
def test_a_text_that_is_no_program_is_told_what_it_is(text, told):
    with pytest.raises(HloError, match=told):
        inspection.inspect(text)


def test_limits_are_broken_with_a_sentence_each(step_text):
    limits = Limits(
        exposed_share=0.1, exposed_s=1e-4, hbm_bytes=2**20, forbidden=("all-gather:data", "all-to-all")
    )
    found = inspection.inspect(step_text, limits=limits)
    assert len(found.broken) == 4
    assert "all-gather:data runs 16 times (train.py:21), and is not allowed" in found.broken
    assert inspection.inspect(step_text, limits=Limits(exposed_share=0.5, hbm_share=0.9)).broken == ()


@pytest.mark.parametrize(
    ("mesh", "forbidden", "broken"),
    [
        ({"X": 2, "Y": 4}, "all-gather:X", True),
        ({"X": 2, "Y": 4}, "all-gather:XY", True),
        ({"X": 2, "Y": 4}, "all-reduce:Y", False),
        ({"DP": 8}, "all-gather:DP", True),
        ({"DP": 8}, "all-reduce:DP", False),
        ({"data": 2, "model": 4}, "all-gather:model", True),
    ],
)
def test_a_forbidden_collective_names_single_axes_however_axes_are_called(mesh, forbidden, broken):
    over_all = SHORT.replace("[2,4]<=[8]", "[1,8]<=[8]").replace("4096", "8192")
    report = inspection.inspect(over_all, mesh=mesh, limits=Limits(forbidden=(forbidden,)))
    assert bool(report.broken) is broken


@pytest.mark.parametrize(
    ("mesh", "forbidden", "words"),
    [
        ({"X": 2, "Y": 4}, "all-gather:Z", "'Z', which the mesh does not have; write one of its axes, X, Y"),
        ({"X": 2, "Y": 4}, "all-to-all:XZ", "names 'Z'"),
        ({"DP": 8}, "all-gather:D", "names 'D'"),
        ({"data": 2, "model": 4}, "all-gather:modl", "one of its axes, data, model"),
        ({"data": 2, "model": 4}, "all-gather:data,modl", "names 'modl'"),
    ],
)
def test_a_forbidden_axis_that_the_mesh_does_not_have_is_refused(mesh, forbidden, words):
    report = inspection.inspect(SHORT, mesh=mesh, limits=Limits(forbidden=(forbidden,)))
    with pytest.raises(ValueError, match=words):
        _ = report.broken


def test_a_limit_that_needs_a_machine_says_so(step_text):
    bare = inspection.inspect(step_text.partition("\n")[2], limits=Limits(exposed_share=0.1))
    with pytest.raises(ValueError, match="--slice v5p:4x4x4"):
        _ = bare.broken
    with pytest.raises(ValueError, match="'gather' is not a collective"):
        Limits(forbidden=("gather",))


def test_a_comparison_lists_what_changed(program):
    faulty, fixed = (program("repeated in a loop", faulty=faulty) for faulty in (True, False))
    found = inspection.compare(faulty, fixed)
    by_name = {one.name: one for one in found.values}
    assert by_name["time of a run"].change < -0.5
    assert [c.name for c in found.collectives] == ["all-gather over data"]
    assert (found.collectives[0].times_before, found.collectives[0].times_after) == (32, 1)
    assert any(one.startswith("repeated in a loop") for one in found.fixed)
    assert inspection.compare(faulty, faulty).collectives == ()
    assert "no total changed" in str(inspection.compare(faulty, faulty))


def test_padding_and_aliases_are_read_from_the_text():
    assert padded_bytes("bf16[8,129]{1,0:T(8,128)(2,1)}") == 2 * 8 * 256
    assert padded_bytes("f32[3,100]{0,1:T(8,128)}") == 4 * 128 * 104
    assert padded_bytes("bf16[8,129]{1,0}") == 2 * 8 * 129
    assert aliases("HloModule f, input_output_alias={ {0}: (2, {}, may-alias), {1}: (0, {}) }, x={}") == {
        0: 2,
        1: 0,
    }


def test_a_comparison_tells_collectives_over_different_axes_apart(program, step):
    before = program("exposed communication", faulty=True)
    found = inspection.compare(before, step)
    assert any(
        re.match(r"exposed communication: An all-gather of .* over the axis data", x) for x in found.added
    )
    assert all("over the axis model" not in x for x in found.added if x.startswith("exposed communication"))
    same = inspection.compare(step, step)
    assert same.fixed == same.added == ()

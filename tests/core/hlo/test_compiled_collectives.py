"""Reads the kind, axes, bytes and trips of collectives from every form in which XLA writes them."""

import pytest

from scalingbook_lib import collectives, hlo
from scalingbook_lib.hlo import module as hlo_module
from scalingbook_lib.notation import Mesh

X2Y4 = Mesh(X=2, Y=4)

HEAD = """HloModule small, is_scheduled=true

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}
"""


def program(*lines, more=""):
    body = "\n".join(f"  {line}" for line in lines)
    entry = "ENTRY %main (p: f32[16,8]) -> f32[16,8] {\n  %p = f32[16,8]{1,0} parameter(0)"
    return f"{HEAD}\n{more}\n{entry}\n{body}\n}}\n"


def rows(text, mesh=X2Y4):
    return [(c.kind, c.over, c.nbytes, c.times) for c in hlo.collectives(text, mesh)]


P_BYTES = 16 * 8 * 4
ALONG_Y = "replica_groups=[2,4]<=[8], channel_id=1"


@pytest.mark.parametrize(
    ("line", "kind", "nbytes"),
    [
        ("%r = f32[64,8]{1,0} all-gather(%p), " + ALONG_Y, "all-gather", 4 * P_BYTES),
        ("%r = f32[4,8]{1,0} reduce-scatter(%p), to_apply=%add, " + ALONG_Y, "reduce-scatter", P_BYTES),
        ("%r = f32[16,8]{1,0} all-reduce(%p), to_apply=%add, " + ALONG_Y, "all-reduce", P_BYTES),
        ("%r = f32[16,8]{1,0} all-to-all(%p), dimensions={0}, " + ALONG_Y, "all-to-all", 4 * P_BYTES),
        # its operands are the data, the destination, and four lists of offsets and lengths
        (
            "%r = f32[16,8]{1,0} ragged-all-to-all(%p, %p, %p), " + ALONG_Y,
            "ragged-all-to-all",
            4 * P_BYTES,
        ),
        # as older versions print it, with the types of the operands and no sign before names
        (
            "ROOT r = f32[16,8]{1,0} all-reduce(f32[16,8]{1,0} p), to_apply=add, " + ALONG_Y,
            "all-reduce",
            P_BYTES,
        ),
        ("%r = (f32[16,8], f32[64,8]) all-gather-start(%p), " + ALONG_Y, "all-gather", 4 * P_BYTES),
        ("%r = f32[16,8]{1,0} all-reduce-start(%p), to_apply=%add, " + ALONG_Y, "all-reduce", P_BYTES),
        (
            "%r = (f32[16,8], f32[16,8]) all-reduce(%p, %p), to_apply=%add, " + ALONG_Y,
            "all-reduce",
            2 * P_BYTES,
        ),
    ],
)
def test_each_kind_counts_the_bytes_that_its_formula_takes(line, kind, nbytes):
    (found,) = hlo.collectives(program(line), X2Y4)
    assert (found.kind, found.axes, found.nbytes, found.times) == (kind, "Y", nbytes, 1)
    assert found.devices == 4
    if kind in ("all-gather", "reduce-scatter", "all-reduce", "all-to-all"):
        assert found.received_bytes == collectives.bytes_received(kind, nbytes, 4)


def test_a_permute_counts_the_bytes_that_one_device_sends():
    text = program("%r = f32[16,8]{1,0} collective-permute(%p), source_target_pairs={{0,4},{4,0}}")
    (found,) = hlo.collectives(text, X2Y4)
    assert (found.over, found.nbytes) == ("X +1", P_BYTES)
    assert found.received_bytes == collectives.bytes_received("permute", P_BYTES, 2)


def test_a_start_and_its_done_are_one_asynchronous_collective():
    text = program(
        "%s = (f32[16,8], f32[64,8]) all-gather-start(%p), " + ALONG_Y,
        "%d = f32[64,8]{1,0} all-gather-done(%s)",
    )
    (found,) = hlo.collectives(text, X2Y4)
    assert found.overlapped


def test_a_collective_in_an_async_computation_counts_once():
    wrapped = f"""%wrapped (q: f32[16,8]) -> f32[4,8] {{
  %q = f32[16,8]{{1,0}} parameter(0)
  ROOT %rs = f32[4,8]{{1,0}} reduce-scatter(%q), to_apply=%add, {ALONG_Y}
}}
"""
    text = program(
        "%s = ((f32[16,8]), f32[4,8], u32[]) async-start(%p), calls=%wrapped",
        "%d = f32[4,8]{1,0} async-done(%s), calls=%wrapped",
        more=wrapped,
    )
    assert rows(text) == [("reduce-scatter", "Y", P_BYTES, 1)]


def test_groups_of_one_device_are_not_collectives():
    text = program(
        "%a = f32[16,8]{1,0} all-reduce(%p), to_apply=%add, replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}",
        "%b = f32[16,8]{1,0} collective-permute(%p), source_target_pairs={{0,0},{1,1}}",
    )
    assert rows(text) == []
    assert str(hlo.collectives(text, X2Y4)) == "no collectives"


def test_only_the_start_of_an_asynchronous_fusion_counts(stored):
    """libtpu writes the same all-gather into the fusions that start it, overlap with it and end it."""
    text = stored("tpu_async_fusion")
    assert text.count(" all-gather(") > 2
    assert rows(text, Mesh(X=4, Y=8)) == [
        ("all-gather", "X", 2 * 2048 * 1024, 3),
        ("all-gather", "X", 2 * 1024 * 2048, 3),
        ("all-reduce", "Y", 2 * 2048 * 2048, 3),
    ]
    first, second, _ = hlo.collectives(text, Mesh(X=4, Y=8))
    assert first.overlapped != second.overlapped


def test_an_all_reduce_fused_with_its_slice_is_a_reduce_scatter(stored):
    """The compiler padded 2048 rows to 2112; a permute then moves the extra rows to their owners."""
    assert rows(stored("tpu_fused_reduce_scatter")) == [
        ("reduce-scatter", "Y", 2 * 2112 * 2048, 1),
        ("collective-permute", "Y +1", 2 * 48 * 2048, 1),
    ]


@pytest.mark.parametrize(("name", "element"), [("cpu_nested_loops", 4), ("tpu_nested_loops", 2)])
def test_collectives_in_nested_loops_count_once_per_trip(stored, name, element):
    """Five trips with three inner ones each; one compiler notes the trip counts, the other does not."""
    assert rows(stored(name)) == [
        ("all-reduce", "Y", element * 2048**2, 15),
        ("all-reduce", "X", element * 2048**2, 5),
    ]


@pytest.mark.parametrize(
    ("condition", "trips"),
    [("direction=LT", 4), ("direction=LE", 5), ("direction=NE", None)],
)
def test_trip_counts_follow_from_start_step_and_limit(condition, trips):
    assert [c.times for c in hlo.collectives(loop(condition), X2Y4)] == [trips]


def test_a_loop_of_unknown_length_counts_once_and_is_reported():
    found = hlo.collectives(loop("direction=NE"), X2Y4)
    assert "≥ 1" in str(found)
    assert "counted once" in str(found)
    assert found.counts() == {"all-reduce": 1}
    assert found != {"all-reduce": 1}  # its text does not reveal how often the loop runs


def loop(direction):
    """A loop whose counter runs from 2 in steps of 3 up to 12, or up to 14 inclusive."""
    parts = f"""%body (s: (s32[], f32[16,8])) -> (s32[], f32[16,8]) {{
  %s = (s32[], f32[16,8]{{1,0}}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %step = s32[] constant(3)
  %next = s32[] add(%i, %step)
  %v = f32[16,8]{{1,0}} get-tuple-element(%s), index=1
  %r = f32[16,8]{{1,0}} all-reduce(%v), to_apply=%add, {ALONG_Y}
  ROOT %t = (s32[], f32[16,8]) tuple(%next, %r)
}}

%condition (c: (s32[], f32[16,8])) -> pred[] {{
  %c = (s32[], f32[16,8]{{1,0}}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %limit = s32[] constant({14 if "LE" in direction else 12})
  ROOT %lt = pred[] compare(%j, %limit), {direction}
}}
"""
    return program(
        "%start = s32[] constant(2)",
        "%state = (s32[], f32[16,8]) tuple(%start, %p)",
        "%w = (s32[], f32[16,8]) while(%state), condition=%condition, body=%body",
        more=parts,
    )


def test_collectives_in_called_computations_count():
    branch = f"""%branch (b: f32[16,8]) -> f32[16,8] {{
  %b = f32[16,8]{{1,0}} parameter(0)
  ROOT %r = f32[16,8]{{1,0}} all-reduce(%b), to_apply=%add, {ALONG_Y}
}}
"""
    called = program("%k = f32[16,8]{1,0} call(%p), to_apply=%branch", more=branch)
    assert hlo.collectives(called, X2Y4) == {"all-reduce": 1}


def test_of_a_conditional_the_branch_with_most_bytes_counts():
    """The second branch has two all-reduces where the first has one."""
    once = f"%r = f32[16,8]{{1,0}} all-reduce(%b), to_apply=%add, {ALONG_Y}"
    twice = f"{once}\n  ROOT %q = f32[16,8]{{1,0}} all-reduce(%r), to_apply=%add, {ALONG_Y}"
    head = "(b: f32[16,8]) -> f32[16,8] {\n  %b = f32[16,8]{1,0} parameter(0)"
    more = f"%short {head}\n  ROOT {once}\n}}\n%long {head}\n  {twice}\n}}\n"
    for named in (
        "branch_computations={%short, %long}",
        "true_computation=%long, false_computation=%short",
    ):
        chosen = program(
            "%c = s32[] constant(0)", f"%k = f32[16,8]{{1,0}} conditional(%c, %p, %p), {named}", more=more
        )
        assert hlo.collectives(chosen, X2Y4) == {"all-reduce": 2}


def test_one_collective_of_several_arrays_counts_once(stored):
    assert rows(stored("tpu_variadic_all_reduce")) == [("all-reduce", "X", 2 * 2048 * (2048 + 4096), 1)]
    assert rows(stored("cpu_tuple_all_to_all")) == [("all-to-all", "Y", 4 * 2048**2, 1)]


def test_collectives_print_as_a_table_and_equal_their_counts(stored):
    found = hlo.collectives(stored("tpu_collective_matmul"), X2Y4)
    assert str(found) == (
        "collective          axes  array         received  times\n"
        "collective-permute  Y +1  bf16 16.8 MB   16.8 MB      3"
    )
    assert found == {"collective-permute": 3}
    assert found != {"collective-permute": 2}
    assert found.over_axes() == {"collective-permute Y": 3}
    assert found.nbytes() == {"collective-permute Y": 3 * 2 * 4096 * 2048}
    assert found.received_bytes == 3 * 2 * 4096 * 2048


def test_groups_along_no_axis_have_the_axis_question_mark():
    text = program(
        "%r = f32[16,8]{1,0} all-reduce(%p), to_apply=%add, replica_groups={{0,1},{2,3},{4,5},{6,7}}"
    )
    assert rows(text) == [("all-reduce", "?", P_BYTES, 1)]


@pytest.mark.parametrize("text", ["", "module {}", "HloModule x"])
def test_a_text_without_an_entry_computation_is_refused(text):
    with pytest.raises(hlo_module.HloError, match=r"is empty|no entry computation|is StableHLO"):
        hlo.collectives(text, X2Y4)


def test_a_text_needs_a_mesh():
    with pytest.raises(hlo_module.HloError, match="which mesh"):
        hlo.collectives(program())


@pytest.mark.parametrize(
    ("dtype", "nbytes"), [("bf16", 2), ("pred", 1), ("s4", 0.5), ("f8e4m3fn", 1), ("c64", 8)]
)
def test_each_data_type_has_its_number_of_bytes(dtype, nbytes):
    assert hlo_module.dtype_bytes(dtype) == nbytes


def test_tuple_elements_are_read_as_a_dump_writes_them():
    dump = """HloModule m
ENTRY %main (p: ((f32[8], bf16[4,2]), s32[])) -> bf16[4,2] {
  %p = ((f32[8]{0}, bf16[4,2]{1,0}), /*index=1*/s32[]) parameter(0)
  ROOT %sum = bf16[4,2]{1,0} all-reduce(%p#0#1), replica_groups={{0,1}}, to_apply=%add
}
"""
    (found,) = hlo.collectives(dump, {"X": 2})
    assert (found.dtype, found.nbytes) == ("bf16", 16)


def test_what_is_not_counted_equals_no_counts():
    known = hlo.Collectives(())
    assert known == {}
    assert known != {"all-reduce": 1}
    assert hlo.Collectives((), ("a loop of unknown length",)) != {}


def test_collectives_equal_those_with_the_same_rows(stored):
    found = hlo.collectives(stored("tpu_collective_matmul"), X2Y4)
    assert found == hlo.collectives(stored("tpu_collective_matmul"), X2Y4)
    assert found != hlo.Collectives(())
    assert found != "collectives"

"""The text of a program as the compiler prints it, and as it dumps it."""

from scalingbook_lib.lab.compiler import hlo


def test_a_part_of_a_tuple_is_read_as_a_dump_writes_it():
    dump = """HloModule m
ENTRY %main (p: ((f32[8], bf16[4,2]), s32[])) -> bf16[4,2] {
  %p = ((f32[8]{0}, bf16[4,2]{1,0}), /*index=1*/s32[]) parameter(0)
  ROOT %sum = bf16[4,2]{1,0} all-reduce(%p#0#1), replica_groups={{0,1}}, to_apply=%add
}
"""
    (found,) = hlo.collectives(dump, {"X": 2})
    assert (found.dtype, found.nbytes) == ("bf16", 16)

"""XLA's short form of HLO is read; what is not HLO is refused with what it is."""

import pytest

from scalingbook_lib import git_lfs, hlo

SHORT = """HloModule m, num_partitions=16

// how XLA's own tests write a program
ENTRY main {
  p = bf16[16000,1000] parameter(0)
  ag-start = (bf16[16000,1000], bf16[16000,8000]) all-gather-start(p),
    replica_groups={{0,1,2,3,4,5,6,7},{8,9,10,11,12,13,14,15}},
    channel_id=1,
    use_global_device_ids=true,
    dimensions={1}
  ROOT ag-done = bf16[16000,8000] all-gather-done(ag-start)
}
"""
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 89012\n"


def test_an_entry_without_arguments_and_an_instruction_over_several_lines_are_read():
    (gather,) = hlo.collectives(SHORT, {"X": 2, "Y": 8})
    assert (gather.kind, gather.over, gather.times) == ("all-gather", "Y", 1)
    assert gather.nbytes == 2 * 16_000 * 8_000


def test_the_short_form_and_the_long_form_are_the_same_program():
    long = SHORT.replace("ENTRY main {", "ENTRY %main (p: bf16[16000,1000]) -> bf16[16000,8000] {")
    assert hlo.parse(SHORT).entry.instructions == hlo.parse(long).entry.instructions


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (POINTER, "is a Git LFS pointer, three lines that stand for the file; write `git lfs"),
        ("module @jit_f attributes {mhlo.num_partitions = 4 : i32} {\n}", "the text is StableHLO"),
        ('#loc = loc("x")\nmodule @jit_f {\n}', "the text is StableHLO"),
        ("HloModule m\n\nENTRY main {\n}\n", "the entry computation 'main' has no instructions"),
        (
            "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 32.00GiB.",
            "the text is an out-of-memory error, not a program: ",
        ),
        ("a log", "the text that begins 'a log' has no entry computation"),
    ],
)
def test_another_text_is_refused_with_what_it_is(text, reason):
    with pytest.raises(hlo.HloError) as refused:
        hlo.parse(text)
    assert reason in str(refused.value)


def test_a_pointer_is_recognized_in_bytes_and_at_its_beginning_alone():
    assert git_lfs.is_pointer(POINTER.encode())
    assert not git_lfs.is_pointer("a page on " + POINTER)
    assert not git_lfs.is_pointer(b"\xff\xfe\x00")

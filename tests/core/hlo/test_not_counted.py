"""Lists what a program does that its text does not reveal."""

from scalingbook_lib import hlo
from scalingbook_lib.notation import Mesh


def test_an_unknown_custom_call_is_listed():
    text = "HloModule m\nENTRY %m (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n" + (
        '  ROOT %c = f32[8]{0} custom-call(%p), custom_call_target="somebody_elses"\n}\n'
    )
    found = hlo.collectives(text, Mesh(X=2))
    assert found.not_counted == ("not counted: what somebody_elses computes and sends",)


IN_A_BRANCH = """HloModule m
%body (s: f32[8]) -> f32[8] {
  %s = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} all-reduce(%s), replica_groups={{0,1}}
}
%looping (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %w = f32[8]{0} while(%a), condition=%somewhere, body=%body
}
%longer (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
LINES  ROOT %l = f32[8]{0} negate(%b)
}
ENTRY %m (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %n = s32[] constant(0)
  ROOT %k = f32[8]{0} conditional(%n, %p, %p), branch_computations={%looping, %longer}
}
"""


def test_a_loop_of_unknown_length_is_listed_in_either_branch():
    """The first branch counts, because it moves most, although the second has more instructions."""
    lines = "".join(f"  %l{n} = f32[8]{{0}} negate(%b)\n" for n in range(9))
    found = hlo.collectives(IN_A_BRANCH.replace("LINES", lines), Mesh(X=2))
    assert [row.times for row in found] == [None]
    assert found.not_counted == ("loop w has a data-dependent trip count: counted once",)

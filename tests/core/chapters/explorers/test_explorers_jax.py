"""The explorers of the chapter on JAX obey the laws of what they show."""

import itertools

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.jax.explorers.calculator import numbers, split
from scalingbook_book.chapters.jax.explorers.types import NOT_GIVEN, SPECS, code, operands
from scalingbook_book.reader.explorers.view import Bars, Grid
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.notation.types import rules, spec
from scalingbook_lib.notation.types.operands import MESH
from scalingbook_lib.sharded_matmul import prices as jax_prices
from scalingbook_lib.sharded_matmul import solve
from scalingbook_lib.sharded_matmul.prices import machine

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("jax")}
CALCULATOR, TYPES, RING, BUCKETS = (ALL[name] for name in ("calculator", "types", "ring", "buckets"))
PRODUCT = rules.PRODUCT


# Specs


@pytest.mark.parametrize(
    ("text", "book"),
    [("P('X', 'Y')", "A[I_X, J_Y]"), ("P(('Y', 'X'))", "A[I_YX, J]"), ("P()", "A[I, J]"),
     ("P(None, 'X')", "A[I, J_X]"), ("PartitionSpec('X', unreduced={'Y'})", "A[I_X, J]{U_Y}"),
     (" jax.P(('X',), None) ", "A[I_X, J]")],
)  # fmt: skip
def test_a_spec_is_the_books_notation(text, book):
    assert spec.read(text, 2, Mesh(X=2, Y=4)) == parse(book)


@pytest.mark.parametrize(
    ("text", "says"),
    [("P('X'", "not Python"), ("Q('X')", "not a P"), ("P(3)", "not an entry"), ("P(X)", "not an entry"),
     ("P('X', 'X')", "is used twice"), ("P('Z')", "no axis 'Z'"), ("P('X', None, 'Y')", "3 entries for 2"),
     ("P('X', unreduced={'X'})", "both shard a dimension and be unreduced"),
     ("P('X', reduced={'Y'})", "reduced= is not read")],
)  # fmt: skip
def test_what_is_no_spec_is_refused_with_what_to_write(text, says):
    with pytest.raises(ValueError, match=says):
        spec.read(text, 2, MESH)


def test_a_type_names_the_axes_behind_the_sizes():
    assert spec.typed(parse("A[I_XY, J]"), (1024, 2048)) == "bfloat16[1024@(X,Y),2048]"
    assert spec.typed(parse("A[I_X, J]{U_Y}"), (64, 8), "float32") == "float32[64@X,8]{U:Y}"


# The calculator


def test_shapes_are_read_with_and_without_parentheses():
    assert numbers("(1024, 2048)") == numbers("1024,2048") == (1024, 2048)
    assert numbers("(5,)") == (5,)
    for text in ("", "a, b", "1,2,3,4,5", "0, 4", "-3", "2.5"):
        with pytest.raises(ValueError, match="is not a shape"):
            numbers(text)


def test_the_order_of_a_tuple_moves_blocks_between_devices():
    one, other = (split(f"P({order})", "8, 2", 2, 4) for order in ("('X', 'Y')", "('Y', 'X')"))
    blocks = [list(s.array.blocks(s.mesh, **s.sizes).values()) for s in (one, other)]
    assert blocks[0] != blocks[1]
    assert set(blocks[0]) == set(blocks[1])
    assert [b[0].start for b in blocks[1]] == [0, 2, 4, 6, 1, 3, 5, 7]
    said = CALCULATOR.evaluate(text="P(('Y', 'X'))", shape="8, 2").verdict
    assert "6 of 8 devices have to send their block" in said
    assert "18.7 µs on a v5e slice, whose axes are lines" in CALCULATOR.evaluate().verdict


def test_bytes_copies_and_devices_balance():
    view = CALCULATOR.evaluate(text="P(None, 'X')", shape="1024, 2048", kind="fp32")
    assert readout(view, "replicas") == 4
    assert (
        readout(view, "bytes per device") * 8 == readout(view, "bytes on all devices") == 4 * 4 * 1024 * 2048
    )


def test_blocks_that_are_uneven_are_refused_as_jax_does():
    assert CALCULATOR.render({"X": 3}).evaluated.error.endswith("pad it to 1,032")


# Types


def legal(texts=SPECS):
    """Every product that has a type, with its operands."""
    for a, b, out in itertools.product(texts, texts, (NOT_GIVEN, *texts)):
        o = operands(PRODUCT, a=a, b=b, out=out, I=8192, J=8192, K=8192)
        answer = rules.answer(PRODUCT, o)
        if answer.array:
            yield o, answer.array


def test_an_unasked_product_never_sums_over_a_split_dimension():
    for o, made in legal():
        if o.out is None:
            assert not (o.a.axes_of("J") and o.b.axes_of("J"))
            assert made.dims[0].axes == o.a.axes_of("I")
            assert made.dims[1].axes == o.b.axes_of("K")


def test_four_answers_to_one_product_have_four_prices():
    o = operands(PRODUCT, a="P('X', 'Y')", b="P('Y', None)", out=NOT_GIVEN, I=8192, J=8192, K=8192)
    prices = {way.name: (way.kinds, way.total_s) for way in jax_prices.out_shardings(o, SPECS)}
    kept, scattered = prices["P('X', None, unreduced={'Y'})"], prices["P('X', 'Y')"]
    reduced, gathered = prices["P('X', None)"], prices["P(None, None)"]
    assert kept == ("free", 0)
    assert (scattered[0], reduced[0]) == ("ReduceScatter", "AllReduce")
    assert reduced[1] == pytest.approx(2 * scattered[1])
    assert gathered[1] > reduced[1]


def test_the_price_of_an_answer_is_what_the_solver_finds_for_it():
    on = machine(jax_prices.CHIP, X=2, Y=4)
    for a, b in (("P('X', 'Y')", "P('Y', None)"), ("P(None, 'X')", "P('X', 'Y')")):
        o = operands(PRODUCT, a=a, b=b, out=NOT_GIVEN, I=8192, J=8192, K=8192)
        for way in jax_prices.out_shardings(o, SPECS):
            goal = spec.read(way.name, 2, MESH, "C", "IK").canonical()
            product = f"{o.a.canonical()} · {o.b.canonical()} -> {goal}"
            found = solve(product, on, {"I": 8192, "J": 8192, "K": 8192})
            assert way.total_s == pytest.approx(min(s.comms_s for s in found.strategies))


def test_a_sum_and_a_flat_view_move_what_no_word_asks_for():
    assert "all-reduce C over X" in TYPES.evaluate(operation="A.sum(0)").verdict
    assert "needs no communication" in TYPES.evaluate(operation="A.sum(0)", a="P(None, 'Y')").verdict
    assert "all-to-all A over Y" in TYPES.evaluate(operation="A.reshape(-1)").verdict
    assert "gather A over Y" in TYPES.evaluate(b="P(None, 'Y')").verdict


def test_a_refusal_says_what_to_write():
    for operation, a, b in itertools.product(rules.RULES, SPECS, SPECS):
        o = operands(operation, a=a, b=b, out=NOT_GIVEN, I=64, J=64, K=64)
        answer = rules.answer(operation, o)
        assert bool(answer.array) != bool(answer.words and answer.instead)


@pytest.mark.parametrize("operation", ["A + B", "A * B"])
def test_partial_sums_are_told_as_python_writes_a_frozen_set(operation):
    a, b = (f"P(None, None, unreduced={{'{axis}'}})" for axis in "XY")
    told = rules.answer(operation, operands(operation, a=a, b=b, out=NOT_GIVEN, I=64, J=64, K=64)).words
    assert told.endswith(f"Got lhs={frozenset('X')}, rhs={frozenset('Y')}")


def test_the_line_is_what_one_would_type():
    o = operands(PRODUCT, a="P('X', 'Y')", b="P('Y', None)", out="P('X', None)", I=64, J=64, K=64)
    assert code(PRODUCT, o) == "jnp.dot(A, B, out_sharding=P('X', None))"
    assert panel(TYPES.evaluate(), Bars).title == "From C[I_X, K]{U_Y} to each out_sharding"
    assert panel(TYPES.evaluate(), Grid).rows[:2] == ["A[I_X, J_Y]", "B[J_Y, K]"]

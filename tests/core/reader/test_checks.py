"""A check accepts right answers, names slips, never reveals the answer and never raises."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import pytest

from scalingbook_book.chapters.checks import Check, Mistake
from scalingbook_book.reader.checks import diagnosis
from scalingbook_book.reader.checks.given import Unparsable, canonical, number
from scalingbook_lib import units

TIME = Check(
    key="here.1",
    title="A matmul's time",
    answer=lambda: 43.61e-6,
    unit="s",
    chips=16,
    hints=("Count FLOPs first.", "Divide by FLOP/s."),
    mistakes=(
        Mistake(lambda: 166e-6, "That is the time for memory."),
        Mistake(3.0, "Three matmuls, not one."),
    ),
    right="Right: arithmetic takes longer than a hop.",
)
BOUND = Check(
    key="here.2",
    title="What binds?",
    answer=lambda: "memory",
    choices=("compute", "memory", "network"),
    mistakes=(Mistake("compute", "64 tokens is few."),),
)
ARRAY = Check(key="here.3", title="The result", answer=lambda: "C[I_XY, K]{U_Z}", kind="notation")


@pytest.mark.parametrize(
    "given", [43.6e-6, "43.6 µs", "43.6us", "0.0436 ms", 4.4e-5, Decimal("43.6e-6"), Fraction(436, 10**7)]
)
def test_a_right_number_is_right_however_it_is_written(given):
    assert TIME(given).ok
    assert TIME(given).message == TIME.right


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (166e-6, "memory"),
        ("130.8 µs", "Three matmuls"),
        (2 * 43.61e-6, "twice"),
        (43.61e-6 / 2, "half"),
        (16 * 43.61e-6, "number of chips"),
        (43.61e-6 / 16, "number of chips"),
        (43.61e-6 * 16 / 15, r"\(N - 1\)/N"),
        ("43.6 ms", "one prefix too large"),
        ("43.6 ns", "one prefix too small"),
        ("43.6 s", "2 prefixes too large"),
        (1 / 43.61e-6, "inverse"),
        (-43.61e-6, "sign"),
        (60 * 43.61e-6, "unit of time"),
        (0, "not zero"),
        (math.inf, "finite"),
        (60e-6, "less than a factor of two"),
        (1.0, "more than a factor of ten"),
    ],
)
def test_a_known_slip_is_named(given, word):
    outcome = TIME(given)
    assert outcome.status == "wrong"
    assert re.search(word, outcome.message), outcome.message


@pytest.mark.parametrize(
    ("answer", "given", "unit", "word"),
    [
        (16e9, 16 * 2**30, "B", "GiB"),
        (16 * 2**30, 16e9, "B", "GiB"),
        (2**20, 1e6, "B", "MiB"),
        (1e12, 2e12, "FLOP", "multiply-add"),
        (0.4, 40, "", "percentage"),
        (240.0, math.log2(240.0), "", "logarithm"),
        (math.inf, 5, "", "No finite number"),
    ],
)
def test_a_slip_is_named_by_what_the_answer_measures(answer, given, unit, word):
    check = Check(key="here.4", title="", answer=lambda: answer, unit=unit, rel_tol=1e-3)
    assert word in check(given).message


def test_a_wrong_unit_is_reported_before_a_wrong_number():
    assert "in B" in TIME("43.6 GB").message
    assert TIME("43.6 GB").status == "unread"
    intensity = Check(key="here.5", title="", answer=lambda: 240.0, unit="FLOP/B")
    assert intensity("240 FLOPs/byte").ok
    assert intensity("0.24 kFLOPs/byte").ok
    assert intensity("240").ok
    assert not intensity("240 s").ok
    assert canonical("GB/ms") == canonical("TB/s")
    assert Check(key="here.6", title="", answer=lambda: 0.4)("40%").ok
    assert Check(key="here.7", title="", answer=lambda: 256.0, unit="tokens")("256 tokens").ok


@pytest.mark.parametrize(
    ("given", "unit", "value"),
    [
        ("200 sequences", "sequences", 200), ("1 Sequence", "sequences", 1),
        ("2 ways", "", 2), ("90 x", "", 90), ("16x", "", 16), ("6.85 M rows", "rows", 6.85e6),
        ("15/4", "FLOP/B", 3.75), ("2^20/2765e9", "s", 2**20 / 2765e9),
        ("2**20 / 2765e9 s", "s", 2**20 / 2765e9),
        ("-(1 + 3) * 2^-2 ms", "s", -1e-3), ("1/8 GB", "B", 0.125e9), ("2 × 3", "", 6),
        ("18.39 B", "", 18.39e9), ("18.39 B parameters", "", 18.39e9), ("18.39 B", "B", 18.39),
        ("43 nanoseconds", "s", 43e-9), ("3 minutes", "s", 180), ("2 kilobytes", "B", 2000),
    ],
)  # fmt: skip
def test_calculations_and_the_words_of_the_exercise_are_read(given, unit, value):
    assert number(given, unit, frozenset({"sequences", "rows"})) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "given", ["200 apples", "9^9^9^9", "1/0", "(1", "1 2", "2 + ", "(-1)^0.5", "1/2 apples"]
)
def test_texts_that_are_no_calculation_are_refused(given):
    with pytest.raises(Unparsable):
        number(given, "sequences", frozenset({"sequences"}))


def test_a_number_is_read_in_the_unit_asked_for():
    assert number("300 Mb/s", "bits/s") == pytest.approx(3e8)
    assert number("37.5 MB/s", "bits/s") == pytest.approx(3e8)
    assert number("3e8", "bits/s") == 3e8


def test_a_count_in_another_unit_is_reported():
    with pytest.raises(Unparsable, match="in chips"):
        number("256 chips", "tokens", frozenset({"tokens", "chips"}))


@pytest.mark.parametrize(
    ("given", "choice"),
    [("x@v", "x @ v"), ("reduce scatter", "ReduceScatter"), ("psum_scatter", "ReduceScatter"),
     ("lax.psum", "AllReduce"), ("all-gather", "AllGather"), ("all_to_all", "AllToAll"),
     ("jax.lax.psum", "AllReduce"), ("TP", "tensor"), ("tensor parallelism", "tensor"), ("pp", "pipeline")],
)  # fmt: skip
def test_a_choice_is_known_by_its_other_spellings(given, choice):
    choices = ("x @ v", "ReduceScatter", "AllReduce", "AllGather", "AllToAll", "tensor", "pipeline")
    assert Check(key="here.9", title="", answer=lambda: choice, choices=choices)(given).ok


def test_an_exact_count_is_compared_exactly():
    exact = Check(key="here.8", title="", answer=lambda: 2**40 + 1, unit="FLOP", rel_tol=0)
    assert exact(2**40 + 1).ok
    assert not exact(2**40 + 10).ok


@pytest.mark.parametrize("empty", [..., None, "", "  ", "...", "…"])
@pytest.mark.parametrize("check", [TIME, BOUND, ARRAY])
def test_an_empty_answer_is_open_and_not_wrong(check, empty):
    assert check(empty).status == "open"


@pytest.mark.parametrize("given", ["memory", " Memory ", "b", "B"])
def test_a_choice_is_known_by_its_word_or_letter(given):
    assert BOUND(given).ok


def test_a_wrong_choice_gets_its_reason_and_no_choice_the_options():
    assert BOUND("compute").message == "64 tokens is few."
    assert BOUND("network").status == "wrong"
    for no_choice in ("latency", 3.0, [], "d"):
        assert BOUND(no_choice).status == "unread"
        assert "network" in BOUND(no_choice).message


@pytest.mark.parametrize("given", ["C[I_XY, K]{U_Z}", "C[I_XY,K]{U_Z}", "D[I_{XY}, K]{U_Z}"])
def test_notation_is_compared_by_meaning(given):
    assert ARRAY(given).ok


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("C[I_XY, K]", "still pending"),
        ("C[I_YX, K]{U_Z}", "order"),
        ("C[I_X, K]{U_Z}", "shard I "),
        ("C[K, I_XY]{U_Z}", "dimensions are not"),
        ("C[I_XY, K_X]{U_Z}", ""),
        ("C(I)", ""),
        (3.0, "as text"),
    ],
)
def test_wrong_notation_is_told_which_part_differs(given, word):
    outcome = ARRAY(given)
    assert not outcome.ok
    assert word in outcome.message
    assert "I_XY, K]{U_Z}" not in outcome.message


class Hostile:
    def __float__(self):
        raise RuntimeError("boo")

    def __eq__(self, other):
        raise RuntimeError("boo")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("check", [TIME, BOUND, ARRAY])
@pytest.mark.parametrize(
    "given",
    [Hostile(), object(), [], [1.0], {}, b"1", True, 1j, math.nan, math.inf, -math.inf, 10**400, -(10**5000),
     "9" * 5000, "1e999999", "nan", "2^99999", "0^-1", "1 B/", "/s", "5 /", "\0", "\ud800", int,
     units.Quantity(1.0, "B")],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_nothing_a_reader_gives_makes_a_check_raise(check, given):
    assert not check(given).ok


def test_numbers_of_other_libraries_are_numbers():
    class Scalar:
        def __float__(self):
            return 43.6e-6

    assert TIME(Scalar()).ok
    assert TIME(units.Quantity(43.6e-6, "s")).ok
    with pytest.raises(Unparsable, match="one number"):
        number([1, 2], "s")


def test_hints_are_numbered_and_end():
    assert str(TIME.hint()) == "Hint 1 of 2: Count FLOPs first."
    assert TIME.hint(2).text == "Divide by FLOP/s."
    assert TIME.hint(3).n == TIME.hint(0).n == 0
    assert "no hint" in str(BOUND.hint())


def known(*facts, **slips):
    return diagnosis.Known(frozenset(facts), tuple((k.replace("_", "-"), v) for k, v in slips.items()))


def test_every_slip_has_a_name_and_none_leads_to_the_answer():
    every = known(
        "bf16", "fp32", "int8", "fp8", "flops", "bytes", "binary", "link", "hops", "cache", "64:layer"
    )
    for unit in ("s", "B", "B/s", "FLOP", "FLOP/s", "", "FLOP/B"):
        for slip in diagnosis.slips(unit, 16, every):
            assert slip.name in diagnosis.SAYS
            assert slip.factor != 1.0
    assert all(says.endswith((".", "?", "element")) for says in diagnosis.SAYS.values())


@pytest.mark.parametrize(
    ("factor", "unit", "words"),
    [
        (-1, "s", "The magnitude is right, but the sign is not"),
        (2, "FLOP", "twice"), (1 / 2, "FLOP", "half"),
        (8, "B", "8 bits"), (1 / 8, "B", "8 bits"),
        (100, "", "100 times too large"), (1 / 100, "", "100 times too small"),
        (1000, "B", "one prefix too large"), (1024, "B", "one prefix too large"),
        (1e-9, "B", "3 prefixes too small"), (2.0**-40, "B", "4 prefixes too small"),
        (1.024**3, "B", "a GiB is 2^30 bytes, a GB is 10^9"), (60, "s", "the unit of time"),
        (5, "FLOP", "too large by the number of chips"), (1 / 5, "B", "too small by the number of chips"),
        (5 / 4, "FLOP", "count the part that does not move"),
        (4 / 5, "B", "leave out the part that a chip already holds"),
    ],
)  # fmt: skip
def test_a_slip_is_known_by_its_factor(factor, unit, words):
    assert words in diagnosis.likely(3 * factor, 3, unit, tol=0.01, chips=5).message


def slips_of(factor, unit, *facts, **slips):
    return diagnosis.likely(7 * factor, 7, unit, tol=0.01, known=known(*facts, **slips)).slips


def test_a_slip_is_told_only_where_its_dimension_occurs():
    says = diagnosis.likely(7, 14, "B", tol=0.01, known=known("int8", "bytes")).message
    assert "int8 takes one byte" in says
    assert "bf16" not in says
    assert "wrong-dtype-size" not in slips_of(4, "B", "bytes")
    assert "factor-two-flops" not in slips_of(2, "sequences")
    assert "both-directions" not in slips_of(4, "B", "link")
    for power in (1, 2, 3, 4):
        assert "binary-for-decimal" not in slips_of(1.024**power, "s", "bytes", "binary", "hops")
        assert "binary-for-decimal" in slips_of(1.024**power, "B")
    assert slips_of(1 / 80, "s", "80:layer") == ("one-for-total",)


def test_a_slip_of_the_solution_is_named_before_a_general_one():
    assert slips_of(0.95, "s", "hops", hops_left_out=(0.95,)) == ("hops-left-out",)
    assert slips_of(0.5, "s", "link", term_left_out=(0.5,))[0] == "one-direction"


def test_the_outcome_of_a_number_prints_as_text_alone():
    assert TIME(1.0)._repr_html_() is None
    assert str(TIME(43.6e-6)).startswith("✓")
    assert str(TIME(1.0)).startswith("✗")


def test_a_difficulty_is_one_of_three():
    with pytest.raises(ValueError, match="difficulty"):
        Check(key="here.9", title="", answer=lambda: 1, difficulty=4)

"""Every rule of the notation has its own error, with the location and what to write instead."""

import dataclasses
import pickle
import re

import pytest

from scalingbook_lib.notation import (
    RULES,
    Array,
    Dim,
    Mesh,
    NotationError,
    Product,
    parse,
    parse_product,
)
from scalingbook_lib.units import BF16

PRODUCT = "A[I, J_X] · B[J_X, K] -> C[I, K]"


A, B, C = parse("A[I, J]"), parse("B[J, K]"), parse("C[I, K]")
BIG = Mesh(X=1000, Y=1000)


def text(read, marked):
    """An array that cannot be read, and what an underline marks."""
    return lambda: parse(read), marked


def product(read, marked):
    return lambda: parse_product(read), marked


def mesh(read, marked):
    return lambda: Mesh.parse(read), marked


BROKEN = [
    ("not-text", lambda: parse(None), None),  # type: ignore[arg-type]
    ("not-text", lambda: Mesh.parse(7), None),  # type: ignore[arg-type]
    ("too-long", *text("A[" + "I," * 500 + "J]", "J]"[-3:])),
    ("unknown-character", *text("A[I-J]", "-")),
    ("unknown-character", *text("А[I]", "А")),  # a Cyrillic letter
    ("unknown-character", *product("A[I, J] + B[J, K] -> C[I, K]", "+")),
    ("unclosed", *text("A[I", "[")),
    ("unclosed", *text("A[I]{U_X", "{")),
    ("unopened", *text("A[I]]", "]")),
    ("mismatched", *text("A[I, J)", ")")),
    ("missing-array", *text("", "")),
    ("missing-array", *product("A[I, J] B[J, K] ->", "")),
    ("missing-name", *text("[I, J]", "[")),
    ("missing-name", *product("A[I, J] · · B[J, K] -> C[I, K]", "·")),
    ("missing-name", *text("3[I]", "3")),
    ("array-name", lambda: Array("A B", (Dim("I"),)), None),
    ("array-name", lambda: Array("", (Dim("I"),)), None),
    ("no-brackets", *text("A", "")),
    ("no-brackets", *text("A(I)", "(")),
    ("one-array", *text("A[I] B[J]", "B")),
    ("empty-dims", *text("A[]", "]")),
    ("empty-dims", lambda: Array("A", ()), None),
    ("missing-dim", *text("A[I,,J]", ",")),
    ("missing-dim", *text("A[I,]", "]")),
    ("no-comma", *text("A[I J]", "J")),
    ("dim-is-size", *text("A[128, J]", "128")),
    ("dim-name", lambda: Dim("1"), None),
    ("dim-name", lambda: Dim("I_X"), None),
    ("run-together", *text("A[IX, J]", "IX")),
    ("duplicate-dim", *text("A[I, J, I_X]", "I")),
    ("unknown-dim", lambda: A.with_axes(K="X"), None),
    ("unknown-dim", lambda: A.axes_of("K"), None),
    ("no-underscore", *text("A[I{X}, J]", "{")),
    ("empty-subscript", *text("A[I_, J]", ",")),
    ("empty-subscript", *text("A[I_{}, J]", "}")),
    ("axis-name", *text("A[I_X2, J]", "2")),
    ("axis-name", *text("A[I_X_Y, J]", "_")),
    ("axis-name", *text("A[I_{2}, J]", "2")),
    ("axis-name", *text("A[I]{U_2}", "2")),
    ("axis-name", lambda: Dim("I", ("XY",)), None),
    ("axis-name", lambda: A.with_partial("2"), None),
    ("axis-repeated", *text("A[I_XX, J]", "X")),
    ("axis-twice", *text("A[I_X, J_YX]", "X")),
    ("axis-twice", *product("A[I_X, J] · B[J, K_X] -> C[I_X, K_X]", "X")),  # case 4 without a gather
    ("axis-twice", lambda: A.with_axes(I="X", J="X"), None),
    ("unknown-axis", lambda: parse("A[I_XW]", Mesh(X=4)), "W"),
    ("unknown-axis", lambda: parse("A[I_X]{U_W}", Mesh(X=4)), "W"),
    ("unknown-axis", lambda: parse_product("A[I, J] B[J, K_W] -> C[I, K]", Mesh(X=4)), "W"),
    ("unknown-axis", lambda: parse("A[I_W]").check(Mesh(X=4)), None),
    ("unknown-axis", lambda: parse("A[I_W]").local_shape(Mesh(X=4), I=4), None),
    ("unknown-axis", lambda: Mesh(X=4).size("XY"), None),
    ("partial-marker", *text("A[I]{V_X}", "V_X")),
    ("partial-marker", *text("A[I]{U_X Y}", "Y")),
    ("empty-partial", *text("A[I]{}", "}")),
    ("empty-partial", *text("A[I]{U}", "U")),
    ("empty-partial", *text("A[I]{U_X,}", "}")),
    ("partial-twice", *text("A[I]{U_XYX}", "X")),
    ("split-and-partial", *text("A[I_X, J]{U_X}", "X")),
    ("no-arrow", *product("A[I, J] · B[J, K]", "")),
    ("two-arrows", *product("A[I, J] -> B[J, K] -> C[I, K]", "->")),
    ("equals", *product("A[I, J] · B[J, K] = C[I, K]", "=")),
    ("one-operand", *product("A[I, J] -> C[I, J]", "->")),
    ("three-operands", *product("A[I, J] · B[J, K] · D[K, L] -> C[I, L]", "·")),
    ("one-result", *product("A[I, J] · B[J, K] -> C[I, K] D[I]", "D")),
    ("result-only-dim", *product("A[I, J] · B[J, K] -> C[I, L, K]", "L")),
    ("result-only-dim", lambda: Product(A, B, parse("C[I, K, L]")), None),
    ("lost-dim", *product("A[I, J] · B[J, K] -> C[I]", "K")),
    ("lost-dim", *product("A[I, J] · B[J, K] -> C[K]", "I")),
    ("lost-dim", lambda: dataclasses.replace(Product(A, B, C), c=parse("C[I]")), None),
    ("empty-mesh", *mesh("  ", "  ")),
    ("empty-mesh", lambda: Mesh(), None),
    ("mesh-syntax", *mesh("X4 4x2", "4x2")),
    ("mesh-syntax", *mesh("X", "X")),
    ("mesh-syntax", *mesh("X4,", ",")),
    ("mesh-axis", *mesh("X4 Data2", "Data")),
    ("mesh-axis", lambda: Mesh(XY=4), None),
    ("mesh-axis-twice", *mesh("X4 X2", "X")),
    ("too-many-devices", lambda: parse("A[I_X]").blocks(BIG, I=4), None),
    ("missing-size", lambda: A.shape(I=4), None),
    ("missing-size", lambda: A.local_bytes(Mesh(X=2), BF16, J=4), None),
    ("not-whole", lambda: A.shape(I=4, J=2.5), None),  # type: ignore[arg-type]
    ("not-whole", lambda: A.shape(I=4, J="8"), None),  # type: ignore[arg-type]
    ("not-whole", lambda: A.shape(I=True, J=2), None),
    ("not-whole", lambda: Mesh(X=float("nan")), None),  # type: ignore[arg-type]
    ("not-whole", lambda: Mesh(X=float("inf")), None),  # type: ignore[arg-type]
    ("not-positive", *mesh("X0", "0")),
    ("not-positive", *mesh("X=4, Y=-2", "-2")),
    ("not-positive", lambda: A.shape(I=0, J=2), None),
    ("not-positive", lambda: Mesh(X=-(10**5000)), None),
    ("too-large", *mesh("X9999999", "9999999")),
    ("too-large", *mesh("X=1" + "0" * 900, "1" + "0" * 900)),
    ("too-large", lambda: A.shape(I=10**5000, J=2), None),
]


def caught(broken):
    with pytest.raises(NotationError) as info:
        broken()
    return info.value


def test_every_rule_has_a_case():
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


def test_no_two_rules_say_the_same():
    assert len({broke for broke, _ in RULES.values()}) == len(RULES)


@pytest.mark.parametrize(("rule", "broken", "marked"), BROKEN)
def test_an_illegal_use_has_its_own_error_and_its_place(rule, broken, marked):
    error = caught(broken)
    assert error.rule == rule
    if marked is not None:
        assert error.span is not None
        assert error.read[slice(*error.span)] == marked or rule == "too-long"


SAMPLE = re.compile(r"[A-Za-z]\w*\[[^]]*\](?:\{[^}]*\})?")


@pytest.mark.parametrize(("rule", "broken", "marked"), BROKEN)
def test_an_error_says_what_was_read_what_broke_and_what_to_write(rule, broken, marked):
    error = caught(broken)
    read, _, rest = str(error).partition(": ")
    assert read
    assert rest == f"{error.broke}; {error.write}"
    assert str(error).isprintable()
    assert len(str(error)) < 400
    for sample in SAMPLE.findall(error.write):
        parse(sample)  # advice that cannot be read is no advice


def test_the_error_of_the_style_guide():
    assert str(caught(lambda: parse("A[I_X, J_X]"))) == (
        "A[I_X, J_X]: mesh axis X already shards I, so it cannot shard J too; "
        "leave X on one of them, as in A[I_X, J]"
    )


def test_the_span_is_that_of_the_second_use_of_an_axis():
    error = caught(lambda: parse_product("A[I_X, J] · B[J, K_X] -> C[I_X, K_X]"))
    assert error.span == (34, 35)


def test_an_error_names_the_part_for_whoever_built_it_by_hand():
    assert caught(lambda: parse("A[I, J_X]").check(Mesh(Y=2))).part == "axis.0"
    assert caught(lambda: parse("A[I, J]").shape(I=2)).part == "dim.1"


def test_an_error_survives_pickling():
    error = caught(lambda: parse("A[I_XX]"))
    twin = pickle.loads(pickle.dumps(error))
    assert (str(twin), twin.rule, twin.span) == (str(error), error.rule, error.span)


def test_hostile_text_costs_little():
    for hostile in ("[" * 10**6, "A[" + "I_" * 10**5, "(" * 999, "A[I" + "'" * 996, "_" * 1000, " " * 1000):
        caught(lambda hostile=hostile: parse(hostile))
        caught(lambda hostile=hostile: parse_product(hostile))
        caught(lambda hostile=hostile: Mesh.parse(hostile))

"""Arrays, meshes and products: what is read, what is refused, and what one device holds."""

import copy
import dataclasses
import itertools
import math
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
    parse_sizes,
)
from scalingbook_lib.units import BF16, FP4, FP32, INT8

CANONICAL = [
    "A[I]", "A[I, J]", "A[I_X, J]", "A[I_XY, J]", "A[I_YX, J]", "A[I, J]{U_X}", "A[I_XY, J]{U_Z}",
    "C[I_X, K]{U_YZ}", "W_in[D_X, F_Y]", "dW_out[F_Y, D]", "Q[B_Z, S, K_Y, H]", "A[B', T1_X]", "x[t]",
]  # fmt: skip


@pytest.mark.parametrize("text", CANONICAL)
def test_an_array_is_printed_as_it_was_read(text):
    assert str(parse(text)) == parse(text).canonical() == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("A[I_XY,J]", "A[I_XY, J]"),
        ("  A [ I_XY ,J ]  ", "A[I_XY, J]"),
        ("A[I_{XY}, J]", "A[I_XY, J]"),
        ("A[I_{X, Y}, J]", "A[I_XY, J]"),
        ("A[I_{X Y}, J]", "A[I_XY, J]"),
        ("A[I _X, J]", "A[I_X, J]"),
        ("C[I,K] {U_X}", "C[I, K]{U_X}"),
        ("C[I, K]_{U_X}", "C[I, K]{U_X}"),
        ("C[I, K]{U_{XY}}", "C[I, K]{U_XY}"),
        ("C[I, K]{U_X, U_Y}", "C[I, K]{U_XY}"),
        ("C[I, K]{ U:X }", "C[I, K]{U_X}"),  # as JAX prints an unreduced type
        ("A[I\u00a0,\tJ]", "A[I, J]"),
    ],
)
def test_other_spellings_mean_the_same_and_are_kept(text, canonical):
    assert parse(text) == parse(canonical)
    assert parse(text).canonical() == canonical
    assert str(parse(text)) == text.strip()


PRODUCT = "A[I, J_X] · B[J_X, K] -> C[I, K]"


@pytest.mark.parametrize(
    "text",
    [
        PRODUCT,
        "A[I, J_X] * B[J_X, K] -> C[I, K]",
        "A[I,J_X]@B[J_X,K]->C[I,K]",
        "A[I,J_X] B[J_X,K] → C[I,K]",
        "A[I, J_X]B[J_X, K]->C[I, K]",
        r"A[I_{}, J_X] \cdot B[J_X, K] \to C[I, K]".replace("_{}", ""),
        "A[I, J_X] × B[J_X, K] ⟶ C[I, K]",
    ],
)
def test_a_product_may_be_typed_in_several_ways(text):
    assert parse_product(text) == parse_product(PRODUCT)
    assert str(parse_product(text)) == text
    assert parse_product(text).canonical() == PRODUCT


def test_the_arrays_of_a_product_keep_their_own_text():
    product = parse_product("A[I,J_X]*B[J_X, K] -> C[I,K] {U_X}")
    assert [str(array) for array in product.arrays] == ["A[I,J_X]", "B[J_X, K]", "C[I,K] {U_X}"]


@pytest.mark.parametrize(
    ("text", "contracting"),
    [
        ("A[I, J] · B[J, K] -> C[I, K]", "J"),
        ("Q[B, T, N, H] · K[B, S, N, H] -> A[B, N, T, S]", "H"),
        ("X[B, T, D] · W[D, N, H] -> Q[B, T, N, H]", "D"),
        ("O[B, T, N, H] · W[N, H, D] -> Y[B, T, D]", "NH"),
        ("X[E, B, D] · W[E, D, F] -> Y[E, B, F]", "D"),
        ("x[I] · y[J] -> A[I, J]", ""),
        ("x[I] · y[I] -> z[I]", ""),
        ("X[J, I] · X[J, K] -> G[K, I]", "J"),
    ],
)
def test_a_product_sums_over_what_its_result_does_not_have(text, contracting):
    product = parse_product(text)
    assert product.contracting == tuple(contracting)
    assert sorted(product.names) == sorted(product.contracting + product.c.names)


@pytest.mark.parametrize(
    "text",
    [
        "A[I_X, J] · B[J, K_X] -> C[I_X, K]",  # case 4: legal, and B has to be gathered first
        "A[I, J_X] · B[J_Y, K] -> C[I, K_Z]",  # disagreeing operands
        "A[I, J]{U_X} · B[J, K_X] -> C[I, K]",  # an operand that is still a partial sum
        "A[I, J] · B[J, K] -> C[I, K]{U_X}",
    ],
)
def test_what_needs_a_strategy_is_not_refused(text):
    assert str(parse_product(text)) == text


# Meshes


@pytest.mark.parametrize(
    "text",
    ["X4 Y2", "X=4, Y=2", "X=4 Y=2", "X:4,Y:2", "X4,Y2", "X4Y2", " X 4 ; Y 2 ", "X4 × Y2", "X = 4\tY = 2"],
)
def test_a_mesh_may_be_typed_in_several_ways(text):
    assert Mesh.parse(text) == Mesh(X=4, Y=2)


def test_a_mesh_prints_itself_and_its_order_counts():
    mesh = Mesh(X=4, Y=2)
    assert (str(mesh), repr(mesh)) == ("X4 Y2", "Mesh(X=4, Y=2)")
    assert mesh != Mesh(Y=2, X=4)
    assert mesh.sizes == {"X": 4, "Y": 2}
    assert (mesh.axes, mesh.shape, mesh.devices) == (("X", "Y"), (4, 2), 8)
    assert (mesh.size("XY"), mesh.size(("Y",)), mesh.size("")) == (8, 2, 1)
    assert list(Mesh(X=2, Y=2).coordinates()) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_sizes_are_read():
    assert parse_sizes("I=128, J=2_048 K:3; B'=4") == {"I": 128, "J": 2048, "K": 3, "B'": 4}


def test_a_slider_gives_whole_floats():
    assert Mesh(X=4.0) == Mesh(X=4)  # type: ignore[arg-type]
    assert parse("A[I_X]").local_shape(Mesh(X=4), I=1024.0) == (256,)  # type: ignore[arg-type]


# What a device holds: the book's numbers


def test_pop_quiz_int8_128_by_2048():
    array, mesh = parse("A[I_XY, J]"), Mesh(X=2, Y=8, Z=2)
    assert array.local_shape(mesh, I=128, J=2048) == (8, 2048)
    assert array.local_bytes(mesh, INT8, I=128, J=2048) == 16_384
    assert array.total_bytes(mesh, INT8, I=128, J=2048) == 512 * 1024
    assert array.replicas(mesh) == 2


def test_pop_quiz_fp32_1024_by_4096():
    array, mesh = parse("A[I_XY, J]"), Mesh(X=8, Y=2)
    assert array.local_shape(mesh, I=1024, J=4096) == (64, 4096)
    assert array.local_bytes(mesh, FP32, I=1024, J=4096) == 2**20


def test_problem_1_sixteen_copies_in_all():
    array, mesh, sizes = parse("A[I_X, J, K]"), Mesh(X=4, Y=8, Z=2), {"I": 64, "J": 8, "K": 8}
    assert array.total_bytes(mesh, BF16, **sizes) == 16 * array.global_bytes(BF16, **sizes)
    assert array.total_bytes(mesh, BF16, **sizes) == 64 * array.local_bytes(mesh, BF16, **sizes)


@pytest.mark.parametrize(
    ("text", "nbytes"), [("A[B, D_Y]", 2_097_152), ("A[B, D]", 8_388_608), ("A[B_X, D_Y]{U_Z}", 524_288)]
)
def test_problem_2_bytes_that_collectives_move(text, nbytes):
    assert parse(text).local_bytes(Mesh(X=4, Y=4, Z=4), BF16, B=1024, D=4096) == nbytes


def test_an_uneven_split_rounds_up():
    array, mesh = parse("A[I_X, J]"), Mesh(X=4)
    assert array.local_shape(mesh, I=10, J=3) == (3, 3)
    assert not array.is_even(mesh, I=10, J=3)
    assert array.total_bytes(mesh, INT8, I=10, J=3) == 36 > array.global_bytes(INT8, I=10, J=3)
    assert [held[0] for held in array.blocks(mesh, I=10, J=3).values()] == [
        range(0, 3), range(3, 6), range(6, 9), range(9, 10),
    ]  # fmt: skip
    assert array.blocks(mesh, I=5, J=3)[3,] == (range(5, 5), range(3))  # 2 + 2 + 1 + nothing


def test_half_byte_elements():
    assert parse("A[I_X]").local_bytes(Mesh(X=2), FP4, I=6) == 1.5


def test_a_partial_sum_is_no_replica_but_takes_memory():
    array, mesh = parse("C[I_X, K]{U_Y}"), Mesh(X=2, Y=4, Z=3)
    assert array.unused_axes(mesh) == ("Z",)
    assert array.replicas(mesh) == 3
    assert array.total_bytes(mesh, INT8, I=2, K=5) == 12 * array.global_bytes(INT8, I=2, K=5)


def test_the_order_of_a_subscript_is_the_order_of_the_blocks():
    mesh = Mesh(X=2, Y=2)
    slow_x, slow_y = parse("A[I_XY]").blocks(mesh, I=4), parse("A[I_YX]").blocks(mesh, I=4)
    assert [slow_x[at][0].start for at in mesh.coordinates()] == [0, 1, 2, 3]
    assert [slow_y[at][0].start for at in mesh.coordinates()] == [0, 2, 1, 3]


def test_the_first_axis_is_slow_whatever_the_order_of_the_mesh():
    blocks = parse("A[I_XY]").blocks(Mesh(Y=3, X=2), I=6)
    assert {at: held[0].start for at, held in blocks.items()} == {
        (0, 0): 0, (0, 1): 3, (1, 0): 1, (1, 1): 4, (2, 0): 2, (2, 1): 5,
    }  # fmt: skip


# Laws, for every sharding of a matrix over three axes

MESH = Mesh(X=2, Y=3, Z=2)


def shardings():
    """Every legal way to put X, Y and Z on I, on J, on a partial sum, or nowhere, in every order."""
    for order in itertools.permutations("XYZ"):
        for places in itertools.product(range(4), repeat=3):
            i, j, partial = ([a for a, p in zip(order, places, strict=True) if p == k] for k in range(3))
            yield Array("A", (Dim("I", tuple(i)), Dim("J", tuple(j))), tuple(partial))


SHARDINGS = sorted(set(shardings()), key=str)


def test_there_are_as_many_shardings_as_orders_allow():
    assert len(SHARDINGS) == sum(math.perm(3, k) * math.comb(k + 2, 2) for k in range(4))


@pytest.mark.parametrize("size", [(12, 24), (7, 5), (1, 1)])
def test_blocks_cover_the_array_once_for_every_copy(size):
    for array in SHARDINGS:
        blocks = array.blocks(MESH, I=size[0], J=size[1])
        held = [index for i, j in blocks.values() for index in itertools.product(i, j)]
        copies = MESH.size(array.unused_axes(MESH) + array.partial)
        assert len(held) == copies * math.prod(size)
        assert set(held) == set(itertools.product(range(size[0]), range(size[1])))


@pytest.mark.parametrize("size", [(12, 24), (7, 5), (1, 1)])
def test_a_block_fits_the_local_shape_and_device_zero_fills_it(size):
    for array in SHARDINGS:
        local = array.local_shape(MESH, I=size[0], J=size[1])
        lengths = [tuple(map(len, held)) for held in array.blocks(MESH, I=size[0], J=size[1]).values()]
        assert lengths[0] == local
        assert all(n <= step for block in lengths for n, step in zip(block, local, strict=True))
        assert (set(lengths) == {local}) == array.is_even(MESH, I=size[0], J=size[1])


def test_bytes_are_conserved():
    for array in SHARDINGS:
        copies = array.replicas(MESH) * MESH.size(array.partial)
        even = array.total_bytes(MESH, BF16, I=12, J=24)
        assert even == copies * array.global_bytes(BF16, I=12, J=24)
        assert even == MESH.devices * array.local_bytes(MESH, BF16, I=12, J=24)
        assert array.total_bytes(MESH, BF16, I=7, J=5) >= copies * array.global_bytes(BF16, I=7, J=5)


def test_devices_that_differ_in_an_unused_axis_hold_the_same():
    for array in SHARDINGS:
        blocks = array.blocks(MESH, I=12, J=24)
        same = [MESH.axes.index(a) for a in array.unused_axes(MESH) + array.partial]
        groups = {
            tuple(-1 if k in same else x for k, x in enumerate(at)): held for at, held in blocks.items()
        }
        assert len(set(groups.values())) == len(groups) == MESH.size(array.axes)


def test_every_sharding_is_read_back():
    for array in SHARDINGS:
        assert parse(str(array)) == array
        assert str(parse(str(array))) == array.canonical() == str(array)


# Values


def test_another_sharding_is_another_value():
    array = parse("A[I_X,J]")
    assert str(array.with_axes(I="", J="XY")) == "A[I, J_XY]"
    assert str(array.with_axes(J=("Y",))) == "A[I_X, J_Y]"
    assert str(array.with_axes(I="").with_partial("X")) == "A[I, J]{U_X}"
    assert str(dataclasses.replace(array, name="B")) == "B[I_X, J]"
    assert str(array) == "A[I_X,J]"


def test_values_are_equal_by_meaning_and_survive_copies():
    array, product, mesh = parse("A[I_X,J]"), parse_product(PRODUCT), Mesh(X=4)
    assert len({array, parse("A[I_X, J]")}) == 1
    for value in (array, product, mesh):
        for twin in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert (twin, str(twin)) == (value, str(value))
    with pytest.raises(dataclasses.FrozenInstanceError):
        mesh.items = ()  # type: ignore[misc]


def test_an_array_answers_for_its_parts():
    array = parse("A[I_XY, J]{U_Z}")
    assert (array.names, array.axes, array.partial) == (("I", "J"), ("X", "Y"), ("Z",))
    assert (array.axes_of("I"), array.axes_of("J")) == (("X", "Y"), ())
    assert array.shape(I=4, J=3) == (4, 3)
    assert parse_product("A[I_Z, J_X] · B[J_X, K] -> C[I, K]{U_Y}").axes == ("Z", "X", "Y")


# Errors: one for each rule


A, B, C = parse("A[I, J]"), parse("B[J, K]"), parse("C[I, K]")
BIG = Mesh(X=1000, Y=1000)


def text(read, marked):
    """An array that cannot be read, and what an underline marks."""
    return lambda: parse(read), marked


def product(read, marked):
    return lambda: parse_product(read), marked


def mesh(read, marked):
    return lambda: Mesh.parse(read), marked


def sizes(read, marked):
    return lambda: parse_sizes(read), marked


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
    ("axis-name", *text("A[I_x, J]", "x")),
    ("axis-name", *text("A[I_X2, J]", "2")),
    ("axis-name", *text("A[I_X_Y, J]", "_")),
    ("axis-name", *text("A[I_{2}, J]", "2")),
    ("axis-name", *text("A[I]{U_x}", "x")),
    ("axis-name", lambda: Dim("I", ("XY",)), None),
    ("axis-name", lambda: A.with_partial("x"), None),
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
    ("mesh-axis", *mesh("X4 data2", "data")),
    ("mesh-axis", lambda: Mesh(x=4), None),
    ("mesh-axis-twice", *mesh("X4 X2", "X")),
    ("too-many-devices", lambda: parse("A[I_X]").blocks(BIG, I=4), None),
    ("empty-sizes", *sizes("", "")),
    ("size-syntax", *sizes("I=128, J", "J")),
    ("size-syntax", *sizes("I128", "I128")),
    ("size-twice", *sizes("I=1, I=2", "I")),
    ("missing-size", lambda: A.shape(I=4), None),
    ("missing-size", lambda: A.local_bytes(Mesh(X=2), BF16, J=4), None),
    ("not-whole", lambda: A.shape(I=4, J=2.5), None),  # type: ignore[arg-type]
    ("not-whole", lambda: A.shape(I=4, J="8"), None),  # type: ignore[arg-type]
    ("not-whole", lambda: A.shape(I=True, J=2), None),
    ("not-whole", lambda: Mesh(X=float("nan")), None),  # type: ignore[arg-type]
    ("not-whole", lambda: Mesh(X=float("inf")), None),  # type: ignore[arg-type]
    ("not-positive", *mesh("X0", "0")),
    ("not-positive", *sizes("I=4, J=-2", "-2")),
    ("not-positive", lambda: A.shape(I=0, J=2), None),
    ("not-positive", lambda: Mesh(X=-(10**5000)), None),
    ("too-large", *mesh("X9999999", "9999999")),
    ("too-large", *sizes("I=1" + "0" * 900, "1" + "0" * 900)),
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
        "A[I_X, J_X]: mesh axis X already splits I, so it cannot split J too; "
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

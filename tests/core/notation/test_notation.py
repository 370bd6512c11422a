"""Arrays, meshes and products: parsing, printing, equality and the parts they report."""

import copy
import dataclasses
import pickle

import pytest

from scalingbook_lib.notation import (
    Mesh,
    parse,
    parse_product,
)

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
def test_a_product_that_needs_communication_is_legal(text):
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


def test_whole_floats_are_accepted_as_sizes():
    assert Mesh(X=4.0) == Mesh(X=4)  # type: ignore[arg-type]
    assert parse("A[I_X]").local_shape(Mesh(X=4), I=1024.0) == (256,)  # type: ignore[arg-type]


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


def test_an_array_names_its_dimensions_and_axes():
    array = parse("A[I_XY, J]{U_Z}")
    assert (array.names, array.axes, array.partial) == (("I", "J"), ("X", "Y"), ("Z",))
    assert (array.axes_of("I"), array.axes_of("J")) == (("X", "Y"), ())
    assert array.shape(I=4, J=3) == (4, 3)
    assert parse_product("A[I_Z, J_X] · B[J_X, K] -> C[I, K]{U_Y}").axes == ("Z", "X", "Y")

"""The notation parses any text or says what is wrong with it; random arrays obey its laws."""

import contextlib
import math
import random
import re

import pytest

pytest.importorskip("hypothesis")
from hypothesis import given
from hypothesis import strategies as st

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
from scalingbook_lib.units import DTYPES
from tests.core import repeatable

hostile = repeatable.examples(1_500, database=None)
lawful = repeatable.examples(400, database=None)

AXES = "XYZ"
CASE = "A[I, J_X] · B[J_X, K] -> C[I, K]{U_X}"
SEEDS = (
    CASE,
    "A[I_{XY},J] * B[J_Z, K] → C[I,K]",
    "W_in[D_X, F_Y]{U_Z}",
    "X4 Y2",
    "X=4, Y=2",
    "I=128, J=2_048",
)
SIGNS = "ABCIJKUXYZx_'[](){},;:=-->·*@→ 0123456789\\\n"


WORDS = [
    "A", "C[", "]", "[", ",", "I", "J_X", "K_XY", "I_XX", "IX", "{U_X}", "{U_YY}", "{U}", "{", "}", "U_Z",
    "_", "_{YX}", ":", "·", "->", "=", "X4", "Y=2", "Z0", "I=8", "J=0", "16", "é",
]  # fmt: skip


def mutated(seed):
    """A valid text with a few characters or words lost, doubled or replaced; from a number, quickly drawn."""
    pick = random.Random(seed)
    text = pick.choice(SEEDS)
    pieces = list(text) if pick.random() < 0.4 else re.findall(r"\w+|\W", text)
    for _ in range(pick.randint(1, 4)):
        at = pick.randrange(len(pieces))
        new = (
            "",
            pieces[at] * 2,
            pick.choice(WORDS),
            pick.choice(pieces),
            pick.choice(SIGNS),
            pick.choice("\x00\ud800²"),
        )
        pieces[at] = pick.choice(new)
    return "".join(pieces)


SEED = st.integers(0, 2**32)
TEXTS = st.one_of(st.text(max_size=40), st.text(SIGNS, max_size=40), SEED.map(mutated))


@hostile
@given(TEXTS)
def test_any_text_is_read_or_refused_in_words(text):
    for read in (parse, parse_product, Mesh.parse):
        try:
            found = read(text)
        except NotationError as error:
            check_error(error, text)
        else:
            check_reading(read, found, text)


def check_error(error, text):
    """An error can be shown: it has a known rule, a place within the text, and a printable sentence."""
    assert error.rule in RULES
    assert error.read == text
    assert error.span is not None
    start, end = error.span
    assert 0 <= start <= end <= len(text)
    assert str(error).isprintable()


def check_reading(read, found, text):
    """What is read is printed as it was written, and its canonical form means the same."""
    if isinstance(found, Array | Product):
        assert str(found) == text.strip()
        assert read(found.canonical()) == found
        assert read(found.canonical()).canonical() == found.canonical()
    if isinstance(found, Mesh):
        assert read(str(found)) == found


# Texts from the grammar

NAMES = st.sampled_from(("A", "B", "W_in", "dW_out", "x", "Tmp", "A'", "h_0"))
DIMS = st.lists(st.sampled_from(("I", "J", "K", "B'", "D1", "t")), min_size=1, max_size=4, unique=True)


@st.composite
def arrays(draw, names=NAMES, dims=DIMS):
    """A legal array: every axis is on one dimension, in the partial sum, or nowhere."""
    names_of_dims = draw(dims)
    places = [[] for _ in range(len(names_of_dims) + 2)]
    for axis in draw(st.permutations(AXES)):
        places[draw(st.integers(0, len(places) - 1))].append(axis)
    axes = (tuple(place) for place in places)
    return Array(draw(names), tuple(Dim(name, next(axes)) for name in names_of_dims), next(axes))


@st.composite
def products(draw):
    """A legal product: a dimension is in one operand and kept, or in both and kept or contracted."""
    roles = {name: draw(st.sampled_from(("a", "b", "batch", "contracted"))) for name in draw(DIMS)}
    a = [name for name, role in roles.items() if role != "b"]
    b = [name for name, role in roles.items() if role != "a"]
    c = [name for name, role in roles.items() if role != "contracted"]
    shuffled = (draw(st.permutations(dims or ["M"])) for dims in (a, b, c))
    a, b, c = (list(dims) for dims in shuffled)
    if "M" in a + b + c:  # an empty array got a dimension of its own: give it to all
        a, b, c = (dims if "M" in dims else [*dims, "M"] for dims in (a, b, c))
    return Product(*(draw(arrays(dims=st.just(dims))) for dims in (a, b, c)))


def spelled(canonical, seed):
    """The same text with other spaces, subscripts, dots and arrows."""
    pick = random.Random(seed).choice
    text = canonical.replace("·", pick("·*@×⋅ ")).replace("->", pick(("->", "→", r"\to ")))
    if pick((True, False)):
        text = text.replace("{U_", "{U:").replace("]{", "]_{")
    gaps = ("", "", " ", "  ", "\u00a0", "\t\n")
    pieces = (pick(gaps) + sign + pick(gaps) if sign in "[],{}·→" else sign for sign in text)
    return "".join(pieces).strip()


@lawful
@given(arrays(), SEED)
def test_an_array_is_read_back_however_it_is_spelled(array, seed):
    assert parse(str(array)) == array
    assert str(parse(str(array))) == str(array)
    text = spelled(array.canonical(), seed)
    assert parse(text) == array
    assert str(parse(text)) == text


@lawful
@given(products(), SEED)
def test_a_product_is_read_back_however_it_is_spelled(product, seed):
    assert parse_product(str(product)) == product
    text = spelled(product.canonical(), seed)
    assert parse_product(text) == product
    assert str(parse_product(text)) == text
    assert sorted(product.contracting + product.c.names) == sorted(product.names)


# What devices hold

MESHES = st.permutations(AXES).flatmap(
    lambda axes: st.tuples(*[st.integers(1, 4)] * 3).map(lambda n: Mesh(**dict(zip(axes, n, strict=True))))
)


@lawful
@given(arrays(), MESHES, st.sampled_from(sorted(DTYPES)), st.data())
def test_bytes_are_conserved(array, mesh, dtype, data):
    sizes = {name: data.draw(st.integers(1, 10**6)) for name in array.names}
    copies, dtype = mesh.size(array.unused_axes(mesh) + array.partial), DTYPES[dtype]
    total = array.total_bytes(mesh, dtype, **sizes)
    assert total >= copies * array.global_bytes(dtype, **sizes) * (1 - 1e-12)  # half bytes are floats
    even = {name: n * mesh.size(array.axes_of(name)) for name, n in sizes.items()}
    assert array.is_even(mesh, **even)
    assert array.local_shape(mesh, **even) == tuple(sizes.values())
    assert array.total_bytes(mesh, dtype, **even) == pytest.approx(copies * array.global_bytes(dtype, **even))
    assert copies * mesh.size(array.axes) == mesh.devices


@lawful
@given(arrays(), MESHES, st.data())
def test_every_element_is_held_once_for_every_copy(array, mesh, data):
    sizes = {name: data.draw(st.integers(1, 9)) for name in array.names}
    blocks = array.blocks(mesh, **sizes)
    copies = mesh.size(array.unused_axes(mesh) + array.partial)
    held = sum(math.prod(map(len, block)) for block in blocks.values())
    assert held == copies * math.prod(sizes.values())
    local = array.local_shape(mesh, **sizes)
    assert blocks[0, 0, 0] == tuple(map(range, local))


@lawful
@given(
    st.dictionaries(
        st.sampled_from(("X", "Y", "x", "XY", "I", "")),
        st.one_of(st.integers(), st.floats(), st.none(), st.text(max_size=3), st.booleans()),
        max_size=3,
    )
)
def test_any_sizes_are_taken_or_refused(sizes):
    for use in (lambda: Mesh(**sizes), lambda: parse("A[I, x]").shape(**sizes)):
        with contextlib.suppress(NotationError):
            use()

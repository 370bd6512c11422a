"""The block that each device holds: the book's numbers, and laws for every sharding."""

import itertools
import math

import pytest

from scalingbook_lib.notation import (
    Array,
    Dim,
    Mesh,
    parse,
)
from scalingbook_lib.units import BF16, FP4, FP32, INT8

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

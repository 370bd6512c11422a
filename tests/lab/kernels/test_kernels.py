"""In the interpreter, each hand-written kernel equals one line of NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scalingbook_lab.compiler import sharding
from scalingbook_lab.kernels import (
    attention,
    collective_matmul,
    matmul,
    ring,
    ring_sum,
    traffic,
)
from scalingbook_lab.kernels.interpreter import interpreter
from scalingbook_lab.kernels.matmul import Tiles
from scalingbook_lib import collectives, roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.models import arithmetic
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16

FOUR = Mesh(X=4)


def whole(*shape, modulus=7):
    """Small integers, whose sums of products are exact in any order."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % modulus - modulus // 2


def on_ring(kernel, arrays, texts, out, n=4):
    """Each device's result, as (position in the whole, value)."""
    mesh = sharding.mesh(X=n)
    placed = [sharding.place(a, text, mesh) for a, text in zip(arrays, texts, strict=True)]
    got = jax.jit(sharding.local(kernel, *texts, out=out, on=mesh))(*placed)
    return [(s.index, np.asarray(s.data)) for s in got.addressable_shards]


# --- one device ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiles", [Tiles(64, 128, 128), Tiles(128, 256, 256)])
def test_tiles_add_up_to_the_product(tiles):
    x, w = whole(128, 256), whole(256, 256, modulus=5)
    assert (np.asarray(matmul.matmul(x, w, tiles, interpret=interpreter())) == x @ w).all()


def test_a_tile_that_does_not_divide_its_dimension_is_refused():
    with pytest.raises(ValueError, match="D = 250 is not divided by tiles of 128; choose"):
        matmul.matmul(whole(128, 250), whole(250, 128), Tiles(128, 128, 128))


@pytest.mark.parametrize(
    ("K", "G", "T", "S", "block", "keys", "causal"),
    [
        (2, 2, 32, 32, 8, 16, True),  # blocks along the diagonal, in part masked
        (1, 4, 16, 48, 8, 16, True),  # queries that come after 32 others
        (2, 1, 16, 32, 16, 16, False),
        (1, 8, 1, 64, 1, 32, True),  # decoding: one query a head
    ],
)
def test_flash_attention_is_attention(K, G, T, S, block, keys, causal):
    shapes = ((K, G, T, 128), (K, S, 128), (K, S, 128))
    q, k, v = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(shapes))
    got = attention.flash(q, k, v, block=block, keys=keys, causal=causal, interpret=True)
    assert np.allclose(got, attention.plain(q, k, v, causal=causal), atol=2e-6)


def test_flash_attention_is_the_online_softmax_of_the_library_in_the_tpu_interpreter():
    q, k, v = (
        jax.random.normal(jax.random.key(i), s) for i, s in enumerate([(1, 1, 8, 128)] + 2 * [(1, 32, 128)])
    )
    got = attention.flash(q, k, v, block=8, keys=8, interpret=interpreter())
    query = 5  # it is the 30th position of 32
    scores = (np.asarray(k[0], float) @ np.asarray(q[0, 0, query], float) / 128**0.5)[: 24 + query + 1]
    softmax = arithmetic.online_softmax(scores.tolist(), 8, np.asarray(v[0, :30], float).tolist())
    assert np.allclose(got[0, 0, query], softmax.final.output, atol=2e-6)


def test_more_queries_than_positions_are_refused():
    with pytest.raises(ValueError, match="T = 64 queries are more than S = 32 positions"):
        attention.flash(jnp.ones((1, 1, 64, 128)), *2 * [jnp.ones((1, 32, 128))], block=8, keys=8)


# --- a ring ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "both_ways"), [(2, False), (4, False), (4, True), (8, True)])
def test_every_device_gathers_the_whole_array(n, both_ways):
    x = whole(16 * n, 128)

    def kernel(x):
        return ring.all_gather(x, "X", both_ways=both_ways, interpret=interpreter())

    assert all((got == x).all() for _, got in on_ring(kernel, [x], ["A[I_X, J]"], "A[I, J]", n))


def test_odd_rows_cannot_be_sent_in_both_directions():
    with pytest.raises(ValueError, match="3 rows cannot be halved"):
        on_ring(lambda x: ring.all_gather(x, "X", both_ways=True), [whole(12, 8)], ["A[I_X, J]"], "A[I, J]")


@pytest.mark.parametrize("both_ways", [False, True])
def test_the_collective_matmul_computes_the_whole_product(both_ways):
    x, w = whole(64, 128), whole(128, 512, modulus=5)

    def kernel(x, w):
        how = {"rows": 8, "columns": 128, "both_ways": both_ways, "interpret": interpreter()}
        return collective_matmul.all_gather_matmul(x, w, "X", **how)

    for place, got in on_ring(kernel, [x, w], ["X[B_X, D]", "W[D, F_X]"], "Y[B, F_X]"):
        assert (got == (x @ w)[place]).all()


@pytest.mark.parametrize("buffers", [None, 2, 3])
def test_a_ring_all_reduce_works_with_two_buffers(buffers):
    x = whole(32, 128)

    def kernel(x):
        return ring_sum.all_reduce(x, "X", buffers=buffers, interpret=interpreter(eager=True))

    total = x.reshape(4, 8, 128).sum(0)
    assert all((got == total).all() for _, got in on_ring(kernel, [x], ["A[I_X, J]"], "A[I_X, J]"))


# --- the bytes that a kernel's text moves ----------------------------------------------------------------


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


@pytest.mark.parametrize("tiles", [Tiles(), Tiles(1024, 256, 512)])
def test_a_tiled_matmul_fetches_what_the_roofline_counts(tiles):
    sides = {"rows": tiles.rows, "columns": tiles.columns, "depth": tiles.depth}
    counted = roofline.tiled_matmul(2048, 4096, 1024, chips.V5E, **sides)
    moved = traffic.moved(lambda x, w: matmul.matmul(x, w, tiles), struct(2048, 4096), struct(4096, 1024))
    assert moved.hbm_bytes == counted.roofline.bytes


def test_a_block_that_stays_is_fetched_once():
    tiles = Tiles(512, 512, 4096)  # all of D: the rows of X stay while the columns of W pass by
    moved = traffic.moved(lambda x, w: matmul.matmul(x, w, tiles), struct(2048, 4096), struct(4096, 1024))
    assert moved.fetched == (2 * 2048 * 4096, 4 * 2 * 4096 * 1024)


def test_flash_attention_reads_what_the_intensity_counts_and_half_of_it_under_a_mask():
    def moved(causal):
        shapes = struct(4, 4, 8192, 128), struct(4, 8192, 128), struct(4, 8192, 128)
        return traffic.moved(lambda q, k, v: attention.flash(q, k, v, causal=causal), *shapes)

    counted, masked = (
        arithmetic.attention_intensity(8192, 8192, 4, block=256, causal=c) for c in (False, True)
    )
    assert moved(False).hbm_bytes == 4 * counted.bytes
    assert 4 * masked.bytes < moved(True).hbm_bytes < 1.05 * 4 * masked.bytes  # blocks on the diagonal


@pytest.mark.parametrize("both_ways", [False, True])
def test_a_ring_kernel_sends_the_bytes_of_the_formula(both_ways):
    kernel = sharding.local(
        lambda x: ring.all_gather(x, "X", both_ways=both_ways), "A[I_X, J]", out="A[I, J]", on=FOUR
    )
    moved = traffic.moved(kernel, struct(4096, 512))
    nbytes = BF16.bytes * 4096 * 512
    assert moved.sent_bytes == collectives.bytes_received("all-gather", nbytes, 4)
    assert len(moved.sent) == (6 if both_ways else 3)
    ways = 2 if both_ways else 1
    link = Axis(4, wrapped=True, link_bytes_per_s=1.0, hop_s=0.0)  # a byte is a second
    assert (
        moved.sent_bytes / ways == collectives.all_gather(nbytes, link, bidirectional=both_ways).bandwidth_s
    )
    assert str(moved) == f"sends 3.15 MB in {len(moved.sent)} remote DMAs"


def test_a_collective_matmul_sends_no_more_than_the_gather():
    def fused(x, w):
        return collective_matmul.all_gather_matmul(x, w, "X", both_ways=True)

    kernel = sharding.local(fused, "X[B_X, D]", "W[D, F_X]", out="Y[B, F_X]", on=FOUR)
    moved = traffic.moved(kernel, struct(4096, 512), struct(512, 2048))
    assert moved.sent_bytes == collectives.bytes_received("all-gather", BF16.bytes * 4096 * 512, 4)


def test_a_function_without_a_kernel_moves_nothing_to_count():
    with pytest.raises(ValueError, match="no Pallas kernel is called"):
        traffic.moved(jnp.matmul, struct(8, 8), struct(8, 8))

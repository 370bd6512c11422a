"""Thresholds at which a sharded matmul is network-bound, and the chapter's worked problems."""

from dataclasses import replace

import pytest

from scalingbook_lib import collectives
from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.sharded_matmul import solve
from scalingbook_lib.units import MB

approx = pytest.approx

V5P = Rings(chips.V5P, X=4)

BIG = {"I": 8192, "J": 8192, "K": 8192}


def derated(chip, link_bytes_per_s):
    """The chip with the link rate that the scaling book uses, 90% of the documented one."""
    return replace(chip, name=f"{chip.name} derated", link_bytes_per_s=link_bytes_per_s)


# --- when does the network bind? --------------------------------------------------------------------------


def network_over_math(product, machine, sizes, name):
    s = solve(product, machine, sizes).named(name)
    return s.transfer.bandwidth_s / s.math_s


@pytest.mark.parametrize(
    ("product", "name", "factor"),
    [
        ("A[I, J_X] · B[J_X, K] -> C[I_X, K]", "reduce-scatter C over X", 1),  # J/X > C/W
        ("A[I, J_X] · B[J_X, K] -> C[I, K]", "all-reduce C over X", 2),  # J/X > 2C/W
    ],
)
def test_a_split_contraction_is_compute_bound_above_c_over_w_a_chip(product, name, factor):
    n, r = 16, 4.59e14 / 2e11
    J = round(factor * r * n * (1 - 1 / n) / 256) * 256  # the textbook's threshold, times the exact 1 - 1/N
    ratio = network_over_math(product, Rings(chips.V5P, X=n), {"I": 4096, "J": J, "K": 4096}, name)
    assert ratio == approx(1, rel=1e-2)


@pytest.mark.parametrize(
    ("product", "name", "split"),
    [
        (
            "A[I_X, J] · B[J, K_X] -> C[I_X, K]",
            "gather B over X",
            "I",
        ),  # tokens a chip: chapter 5's FSDP rule
        ("A[I_X, J] · B[J, K_X] -> C[I, K_X]", "gather A over X", "K"),  # the tensor-parallel rule
    ],
)
def test_case_4_is_compute_bound_above_c_over_w_rows_or_columns_a_chip(product, name, split):
    n, r = 16, 4.59e14 / 2e11
    sizes = {"I": 4096, "J": 4096, "K": 4096} | {split: round(r * n * (1 - 1 / n) / 256) * 256}
    assert network_over_math(product, Rings(chips.V5P, X=n), sizes, name) == approx(1, rel=1e-2)


@pytest.mark.parametrize(("chip", "r"), [
    (chips.V4, 2750), (chips.V5E, 1970), (chips.V5P, 2295), (chips.V6E, 4590), (chips.TPU7X, 11535),
])  # fmt: skip
def test_c_over_w_of_the_documented_links(chip, r):
    assert chip.bf16_flops_per_s / chip.axis(16, wrapped=True).bytes_per_s == approx(r, rel=1e-3)


@pytest.mark.parametrize(("chip", "link", "r"), [
    (chips.V4, 45e9, 3056), (chips.V5E, 45e9, 2189), (chips.V5P, 90e9, 2550), (chips.V6E, 90e9, 5100),
    (chips.TPU7X, 90e9, 12817),
])  # fmt: skip
def test_c_over_w_as_the_scaling_book_prints_it(chip, link, r):
    assert chip.bf16_flops_per_s / (2 * derated(chip, link).link_bytes_per_s) == approx(r, rel=1e-3)


# --- problem 4: gather the weight's activations, or slice the weight and reduce ---------------------------


def strategies(B, D, F=8192, n=4, chip=None):
    """X[B, D] Y[D_N, F] -> Z[B, F]: the two strategies of problem 4, as the textbook times them."""
    machine = Rings(chip or derated(chips.V5P, 90e9), N=n)
    found = solve("X[B, D] · Y[D_N, F] -> Z[B, F]", machine, {"B": B, "D": D, "F": F})
    one, two = found.named("gather Y over N"), found.named("slice X over N, all-reduce Z over N")
    return [max(s.math_s, s.transfer.bandwidth_s) for s in (one, two)] + [one, two]


@pytest.mark.parametrize("B", [512, 1024, 1536])
def test_below_c_over_w_tokens_the_reduction_wins_where_d_exceeds_2b(B):
    for D in (B, 2 * B - 256):
        one, two, *_ = strategies(B, D)
        assert one < two
    one, two, *_ = strategies(B, 2 * B)
    assert one == approx(two)
    one, two, *_ = strategies(B, 2 * B + 256)
    assert two < one


def test_above_c_over_w_tokens_the_reduction_wins_where_d_exceeds_2r():
    r, B = 2550, 8192
    for D, winner in [(3584, 0), (4096, 1)]:
        times = strategies(B, D)[:2]
        assert times.index(min(times)) == winner
        assert winner == int(2 * r * (1 - 1 / 4) < D)  # 2r, times the exact 1 - 1/N of a ring of 4


def test_gathering_is_network_bound_below_c_over_w_tokens():
    for B, bound in [(1792, True), (2048, False)]:  # 2550 · (1 - 1/4) = 1912
        one = strategies(B, 8192)[2]
        assert (one.transfer.bandwidth_s > one.math_s) == bound


def test_a_third_way_beats_both_where_they_are_equally_fast():
    """Exchange the weight so that each chip has columns, multiply, gather the result: 5/6 of the time."""
    machine = Rings(derated(chips.V5P, 90e9), N=4)
    found = solve("X[B, D] · Y[D_N, F] -> Z[B, F]", machine, {"B": 1024, "D": 2048, "F": 8192})
    assert found.best.name == "all-to-all Y over N, gather Z over N"
    one = found.named("gather Y over N").transfer.bandwidth_s
    assert one == approx(found.named("slice X over N, all-reduce Z over N").transfer.bandwidth_s)
    assert found.best.transfer.bandwidth_s == approx(5 / 6 * one)


# --- problem 5: the lowest latency with a replicated result -----------------------------------------------


@pytest.mark.parametrize(
    ("chip", "J"),
    [(derated(chips.V5P, 90e9), 850), (derated(chips.V4, 45e9), 1019), (chips.V5P, 765), (chips.V4, 917)],
)  # fmt: skip
def test_replicated_work_wins_only_for_short_contractions(chip, J):
    """J < C/(3W) on a 4x4x4: the (1 - 1/n) of the arithmetic saved and of the gather cancel."""
    cube = chips.Slice(chip, (4, 4, 4)).mesh(X=4, Y=4, Z=4)
    assert chip.bf16_flops_per_s / (3 * cube.axes("X")[0].bytes_per_s) == approx(J, abs=1)
    for size, split in [(J // 64 * 64 - 64, False), (J // 64 * 64 + 128, True)]:
        found = solve(
            "A[I, J] · B[J, K] -> C[I, K]", cube, {"I": 65536, "J": size, "K": 8192}, idle_axes=True
        )
        alone = found.named("nothing to move")
        shared = found.named("slice A over X, slice A over Y, slice A over Z, gather C over XYZ")
        assert (shared.math_s + shared.transfer.bandwidth_s < alone.math_s) == split


def test_sharing_the_rows_or_the_columns_is_equally_fast_and_the_contraction_twice_as_slow():
    cube = chips.Slice(chips.V5P, (4, 4, 4)).mesh(X=4, Y=4, Z=4)
    found = solve("A[I, J] · B[J, K] -> C[I, K]", cube, BIG, idle_axes=True)
    slices = ", ".join(f"slice {{0}} over {axis}" for axis in "XYZ")
    rows, columns = (found.named(f"{slices.format(x)}, gather C over XYZ") for x in "AB")
    assert rows.comms_s == columns.comms_s
    summed = found.named(f"{slices.format('A')}, {slices.format('B')}, all-reduce C over XYZ")
    assert summed.comms_s == approx(2 * rows.comms_s)
    assert found.best.comms_s == rows.comms_s  # or some of both, whose result is gathered at once


# --- problems 6, 7, 9 -------------------------------------------------------------------------------------

V5E_4x4 = chips.Slice(chips.V5E, (4, 4)).mesh(X=4, Y=4)
V5E_4x4_DERATED = chips.Slice(derated(chips.V5E, 45e9), (4, 4)).mesh(X=4, Y=4)
SQUARE = {"I": 16384, "J": 16384, "K": 16384}


@pytest.mark.parametrize(
    ("machine", "at_a", "at_b"),
    [(V5E_4x4_DERATED, 26267, 13133), (V5E_4x4, 23640, 11820)],
    ids=["45e9", "50e9"],
)
def test_problem_6_on_a_v5e_without_wraps(machine, at_a, at_b):
    product = "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]"
    ratio = network_over_math(product, machine, SQUARE, "all-reduce C over Y")
    assert ratio == approx(at_a / 16384, rel=1e-3)  # compute-bound iff J > 26,267
    product = "A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]"
    ratio = network_over_math(product, machine, SQUARE, "gather B over X")
    assert ratio == approx(at_b / 16384, rel=1e-3)  # compute-bound iff I > 13,133
    assert solve("A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]", machine, SQUARE).best.comms_s == 0


def test_problem_6_with_the_wraps_of_a_cube_is_four_times_as_fast():
    cube = chips.Slice(derated(chips.V5P, 90e9), (4, 4, 4)).mesh(X=4, Y=4, Z=4)
    product = "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]"
    fast, slow = (
        solve(product, m, SQUARE).named("all-reduce C over Y").transfer for m in (cube, V5E_4x4_DERATED)
    )
    assert slow.bandwidth_s == approx(4 * fast.bandwidth_s)


def test_problem_7_a_feed_forward_layer_on_four_chips_is_memory_bound():
    mesh = chips.Slice(derated(chips.V5E, 45e9), (2, 2)).mesh(X=2, Y=2)
    sizes = {"B": 128, "D": 8192, "F": 32768}
    up = solve("In[B, D_XY] · W[D, F_XY] -> H[B, F_XY]", mesh, sizes).named("gather In over XY")
    down = solve("H[B, F_XY] · V[F_XY, D] -> Out[B, D_XY]", mesh, sizes).named("reduce-scatter Out over XY")
    assert up.transfer.bandwidth_s == down.transfer.bandwidth_s == approx(17.5e-6, rel=5e-3)
    assert up.transfer.latency_s + down.transfer.latency_s == approx(4e-6)
    assert up.math_s + down.math_s == approx(174e-6, rel=5e-3)
    weights = 2 * 2 * 8192 * 32768 / 4
    assert weights == approx(268 * MB, rel=2e-3)
    assert weights / 8.19e11 == approx(327e-6, rel=3e-3)
    assert up.hbm_s + down.hbm_s == approx(weights / 8.19e11, rel=4e-2)  # and the activations
    assert (up.bound, down.bound) == ("memory", "memory")


def test_problem_7_gathering_the_weights_takes_milliseconds():
    ring = derated(chips.V5E, 45e9).axis(2, wrapped=False)
    gather = collectives.all_gather(2 * 2 * 8192 * 32768, ring, ring)
    assert gather.bandwidth_s == approx(8.9e-3, rel=1e-2)


def test_problem_9_gathering_first_or_scattering_last_moves_m_against_k():
    n, m, k = 4096, 8192, 2048
    sizes = {"N": n, "M": m, "K": k}
    found = solve("A[N, M_X] · B[M, K] -> C[N, K_X]", V5P, sizes)
    first = found.named("gather A over X, slice B over X")
    last = found.named("slice B over X, reduce-scatter C over X")
    assert first.transfer.bandwidth_s / last.transfer.bandwidth_s == approx(m / k)


def test_two_chips_that_split_a_contraction_need_it_to_be_long():
    """Rooflines, problem of the network: D > 2C/W1, or C/W1 where the result may stay split."""
    pair = Axis(2, False, 45e9, 0.0)
    machine = Rings(chips.V5E, X=pair)
    for product, name, threshold in [
        ("A[B, D_X] · W[D_X, F] -> C[B, F]", "all-reduce C over X", 8756 / 2 * 2),
        ("A[B, D_X] · W[D_X, F] -> C[B, F_X]", "reduce-scatter C over X", 4378),
    ]:
        sizes = {"B": 1024, "D": 8192, "F": 1024}
        assert network_over_math(product, machine, sizes, name) == approx(threshold / 8192, rel=1e-3)

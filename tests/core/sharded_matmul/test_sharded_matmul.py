"""Every strategy computes the product at the time that the formulas state."""

import math
from dataclasses import replace

import pytest
from data_mover import Machine

from scalingbook_lib import collectives
from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import NotationError, parse_product
from scalingbook_lib.sharded_matmul import cases, solve
from scalingbook_lib.units import BF16, INT8

approx = pytest.approx

CASE = {
    1: "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]",
    2: "A[I, J_X] · B[J, K] -> C[I, K]",
    3: "A[I, J_X] · B[J_X, K] -> C[I, K]",
    4: "A[I_X, J] · B[J, K_X] -> C[I_X, K]",
}
V5P = Rings(chips.V5P, X=4)
BIG = {"I": 8192, "J": 8192, "K": 8192}


# --- every strategy computes the product ------------------------------------------------------------------

PRODUCTS = [
    *CASE.values(),
    "A[I, J] · B[J, K] -> C[I, K]",
    "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]",
    "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]",
    "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]{U_Y}",
    "A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]",
    "A[I_XY, J] · B[J, K_YX] -> C[I, K_XY]",
    "A[I, J_X] · B[J_Y, K] -> C[I_Y, K_X]",
    "A[I, J]{U_X} · B[J, K_X] -> C[I, K]",
    "A[N_X, I, J_Y] · B[N_X, J_Y, K] -> C[N_X, I_Y, K]",
]


@pytest.mark.parametrize("text", PRODUCTS)
@pytest.mark.parametrize("mesh", [{"X": 2, "Y": 2}, {"X": 2, "Y": 1}])
def test_every_strategy_computes_the_product_on_every_device(text, mesh):
    extents = {"N": 4, "I": 4, "J": 4, "K": 4}
    product, machine = parse_product(text), Machine(mesh, extents)
    a = machine.place(product.a, left)
    b = machine.place(product.b, right)
    whole = truth(machine, product)
    found = solve(product, Rings(chips.V5P, **mesh), {n: extents[n] for n in product.names})
    assert len(found.strategies) >= 1
    for strategy in found.strategies:
        got = carry_out(machine, strategy, product, a, b)
        for device in machine.devices:
            group = machine.group(device, product.c.partial)
            assert {i: sum(got[other][i] for other in group) for i in got[device]} == {
                i: whole[i] for i in machine.blocks(product.c)[device]
            }, strategy


def left(i):
    return 1 + 3 * i[0] + 5 * i[-1] * i[-1] + 7 * i[-2]


def right(i):
    return 2 + i[0] * i[-1] - i[-2]


def truth(machine, product):
    """The product as one device would compute it."""
    names = {
        array: array.with_partial("").with_axes(**dict.fromkeys(array.names, "")) for array in product.arrays
    }
    a, b, c = (names[array] for array in product.arrays)
    one = Machine({"X": 1}, machine.extents)
    return one.multiply(replace(product, a=a, b=b, c=c), one.place(a, left), one.place(b, right))[0,]


def carry_out(machine, strategy, product, a, b):
    """What every device holds in the end."""
    a = machine.run([m for m in strategy.before if m.before.name == "A"], a)
    b = machine.run([m for m in strategy.before if m.before.name == "B"], b)
    return machine.run(strategy.after, machine.multiply(strategy.local, a, b))


# --- the four cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASE)
def test_products_fall_into_the_four_cases(case):
    found = solve(CASE[case], Rings(chips.V5P, X=4, Y=4), BIG)
    assert found.case == case
    assert found.strategies[0] is found.best
    told = str(found).partition("Next: ")[2]
    assert not told or f": {found.margin:.3g} times as long" in told
    assert (found.margin < math.inf) == (len(found.strategies) > 1)


def test_every_axis_has_its_own_case():
    product = parse_product("A[I_X, J_Y] · B[J_Y, K_X] -> C[I_X, K]")
    assert cases(product) == {"X": 4, "Y": 3}
    assert cases(parse_product("A[N_X, I, J_Y] · B[N_X, J, K] -> C[N_X, I, K]")) == {"X": 1, "Y": 2}


def test_case_1_moves_nothing():
    assert solve(CASE[1], Rings(chips.V5P, X=4, Y=4), BIG).best.name == "nothing to move"


def test_case_2_gathers_or_slices_or_exchanges():
    names = {s.name for s in solve(CASE[2], V5P, BIG).strategies}
    assert {
        "gather A over X",
        "slice B over X, all-reduce C over X",
        "all-to-all A over X, gather C over X",
    } <= names


def test_case_2_reduce_scatters_where_the_result_may_stay_split():
    found = solve("A[I, J_X] · B[J, K] -> C[I, K_X]", V5P, BIG)
    assert found.named("slice B over X, reduce-scatter C over X").comms_s == approx(
        solve(CASE[2], V5P, BIG).named("slice B over X, all-reduce C over X").comms_s / 2
    )


def test_case_3_all_reduces_or_stops_half_way():
    full = solve(CASE[3], V5P, BIG).best
    scattered = solve("A[I, J_X] · B[J_X, K] -> C[I_X, K]", V5P, BIG).best
    assert (full.name, scattered.name) == ("all-reduce C over X", "reduce-scatter C over X")
    assert full.comms_s == approx(2 * scattered.comms_s)
    unfinished = solve("A[I, J_X] · B[J_X, K] -> C[I, K]{U_X}", V5P, BIG).best
    assert unfinished.name == "nothing to move"


@pytest.mark.parametrize(("I", "K", "gathered"), [(1024, 32768, "A"), (32768, 1024, "B")])
def test_case_4_gathers_the_smaller_operand_when_the_result_may_lie_either_way(I, K, gathered):
    sizes = {"I": I, "J": 8192, "K": K}
    rows = solve("A[I_X, J] · B[J, K_X] -> C[I_X, K]", V5P, sizes).named("gather B over X")
    columns = solve("A[I_X, J] · B[J, K_X] -> C[I, K_X]", V5P, sizes).named("gather A over X")
    assert min((rows, columns), key=lambda s: s.comms_s).name == f"gather {gathered} over X"


def test_the_requested_sharding_is_produced_and_paid_for():
    kept = solve("A[I_X, J] · B[J, K_X] -> C[I_X, K]", V5P, BIG).named("gather B over X")
    asked = solve("A[I_X, J] · B[J, K_X] -> C[I, K_X]", V5P, BIG).named(
        "gather B over X, all-to-all C over X"
    )
    exchange = collectives.all_to_all(2 * 8192 * 8192, *V5P.axes("X"))
    assert asked.comms_s == approx(kept.comms_s + exchange.total_s)


def test_an_unused_axis_repeats_the_work_unless_it_may_help():
    cube = chips.Slice(chips.V5P, (4, 4, 4)).mesh(X=4, Y=16)
    alone = solve("A[I_X, J] · B[J, K] -> C[I_X, K]", cube, BIG)
    assert alone.best.flops == 2 * 8192**3 // 4
    helped = solve("A[I_X, J] · B[J, K] -> C[I_X, K]", cube, BIG, idle_axes=True)
    assert helped.best.lower_s < alone.best.lower_s
    assert helped.best.flops == 2 * 8192**3 // 64


def test_several_torus_axes_under_one_mesh_axis_are_as_many_times_as_fast():
    one, two = (Rings(chips.V5P, X=16), chips.Slice(chips.V5P, (4, 4, 4)).mesh(X=16, Y=4))
    slow, fast = (solve(CASE[2], machine, BIG).named("gather A over X").transfer for machine in (one, two))
    assert slow.bandwidth_s == approx(2 * fast.bandwidth_s)


def test_flops_bytes_and_times_match_hand_counts():
    s = solve(CASE[3], V5P, BIG).best
    assert s.flops == 2 * 8192**3 // 4
    assert s.math_s == s.flops / chips.V5P.bf16_flops_per_s
    assert s.hbm_bytes == 2 * (2 * 8192 * 2048 + 8192 * 8192)
    assert s.hbm_s == s.hbm_bytes / chips.V5P.hbm_bytes_per_s
    assert s.comms_s == collectives.all_reduce(2 * 8192 * 8192, *V5P.axes("X")).total_s
    assert s.transfer.latency_s == approx(4e-6)
    assert (s.lower_s, s.upper_s) == (max(s.math_s, s.hbm_s, s.comms_s), s.math_s + s.comms_s)


def test_smaller_types_move_fewer_bytes_and_multiply_faster():
    wide, narrow = (solve(CASE[3], V5P, BIG, dtype).best for dtype in (BF16, INT8))
    assert narrow.transfer.bandwidth_s == wide.transfer.bandwidth_s / 2
    assert narrow.math_s == wide.math_s / 2


# --- what does not work -----------------------------------------------------------------------------------


def test_a_strategy_that_does_not_fit_is_rejected_with_its_size():
    found = solve(
        "A[I_X, J] · B[J, K_X] -> C[I_X, K]", Rings(chips.V5E, X=16), {"I": 256, "J": 65536, "K": 131072}
    )
    assert "gather B over X" not in [s.name for s in found.strategies]
    assert any("TPU v5e has" in rejected.why for rejected in found.rejected)


def test_a_strategy_that_splits_unevenly_is_rejected():
    found = solve("A[I_X, J] · B[J, K_X] -> C[I_X, K]", V5P, {"I": 8, "J": 6, "K": 8})
    assert any("J = 6 does not divide evenly over X" in rejected.why for rejected in found.rejected)


def test_an_uneven_operand_is_refused_with_a_size_that_works():
    with pytest.raises(
        ValueError, match=r"I = 10 does not divide evenly over the 4 chips of X; pad it to 12"
    ):
        solve(CASE[4], V5P, {"I": 10, "J": 8, "K": 8})


def test_if_no_strategy_fits_the_error_gives_the_first_reason():
    with pytest.raises(ValueError, match="has no strategy on TPU v5e"):
        solve("A[I, J] · B[J, K] -> C[I, K]", Rings(chips.V5E, X=1), {"I": 131072, "J": 131072, "K": 131072})


def test_an_axis_that_the_mesh_lacks_is_a_notation_error():
    with pytest.raises(NotationError, match="no axis Y"):
        solve("A[I_Y, J] · B[J, K] -> C[I_Y, K]", V5P, BIG)


def test_a_strategy_is_found_by_name_or_the_error_lists_the_names():
    with pytest.raises(ValueError, match="gather A over X"):
        solve(CASE[2], V5P, BIG).named("teleport A over X")


def test_results_print_as_one_line():
    found = solve(CASE[3], V5P, BIG)
    assert str(found) == (
        "A[I, J_X] · B[J_X, K] -> C[I, K] is case 3, both are sharded along the contracting dimension: local "
        "products are partial sums. Fastest: all-reduce C over X: 1.01 ms with full overlap, network-bound "
        "(math 599 µs, HBM 72.8 µs, network 1.01 ms). "
        "Next: all-to-all A over X, gather B over X, gather C over X: 1.17 times as long, network-bound"
    )
    assert found.margin == approx(1.17, abs=0.01)

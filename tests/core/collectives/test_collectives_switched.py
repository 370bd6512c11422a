"""The formulas of `collectives` on levels are the times of an exact switch simulator, and known figures."""

from dataclasses import replace
from fractions import Fraction as F

import pytest
import switch_schedules as schedules
import switch_simulator as simulator

from scalingbook_lib import collectives
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster, Level
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.units import GB, MB

approx = pytest.approx
M, W, NIC = F(5040), F(9, 2), F(1, 2)  # any array and rates: the equalities are exact
HOPS = [F(1, 7), F(3, 7), F(5, 7), F(8, 7)]
PAIRS = [
    (collectives.all_gather, schedules.gather),
    (collectives.reduce_scatter, schedules.scatter),
    (collectives.all_reduce, schedules.reduce),
    (collectives.all_to_all, schedules.exchange),
]
NAMED = pytest.mark.parametrize(("formula", "plan"), PAIRS, ids=[formula.__name__ for formula, _ in PAIRS])
TREES = [
    [2], [5], [8],
    [2, 2], [4, 3], [8, 4], [3, 8],
    [2, 2, 2], [4, 2, 3], [2, 4, 3], [2, 2, 2, 2], [3, 2, 4, 2],
]  # fmt: skip


def tree(sizes, narrowing=1, reduces=False, nic=NIC):
    """A domain, then leaf, spine and core of one network, each level `narrowing` times thinner."""
    rates = [W, nic, nic / narrowing, nic / narrowing**2]
    ports = ["domain", "network", "network", "network"]
    names = ["domain", "leaf", "spine", "core"]
    return [Level(*each) for each in zip(names, sizes, rates, HOPS, [reduces] * 4, ports, strict=False)]


def mesh(n):
    return [Level.full_mesh("mesh", n, F(64), F(1, 7))]


def simulated(formula, plan, levels):
    name = formula(M, *levels).name
    n = collectives.chips(*levels)
    pieces = n * n if name == "AllToAll" else n
    return simulator.execute(name, plan(levels), levels, M, pieces)


@NAMED
@pytest.mark.parametrize("sizes", TREES, ids=str)
@pytest.mark.parametrize("narrowing", [1, 2, 8])
class TestTheFormulaIsTheSimulatedTime:
    def test_serialized_levels_take_the_simulated_time(self, formula, plan, sizes, narrowing):
        levels = tree(sizes, narrowing)
        run = simulated(formula, plan, levels)
        took = formula(M, *levels, overlap=False)
        assert (took.bandwidth_s, took.latency_s) == (run.seconds, run.hops_s)

    def test_all_levels_at_once_take_as_long_as_the_busiest_wire(self, formula, plan, sizes, narrowing):
        levels = tree(sizes, narrowing)
        assert formula(M, *levels).bandwidth_s == simulated(formula, plan, levels).busiest_s


@NAMED
@pytest.mark.parametrize("n", range(2, 10))
def test_on_a_full_mesh_each_peer_has_its_own_link(formula, plan, n):
    run = simulated(formula, plan, mesh(n))
    assert formula(M, *mesh(n)).bandwidth_s == run.seconds == run.busiest_s


@pytest.mark.parametrize("sizes", [[4], [5], [8], [72]], ids=str)
def test_in_one_switch_that_sums_a_wire_carries_the_array_and_one_part_more(sizes):
    levels, n = tree(sizes, reduces=True), sizes[0]
    run = simulator.execute("AllReduce", schedules.sum_in_switches(levels), levels, M, n)
    took = collectives.all_reduce(M, *levels, in_switch=True)
    # in the first step the array goes up and a part comes down, in the second the reverse
    assert took.bandwidth_s == run.busiest_s == M * (n + 1) / (n * W)
    assert took.latency_s == run.hops_s


@pytest.mark.parametrize("n", [2, 3])
def test_up_to_three_chips_the_switch_saves_no_bytes_and_the_chips_sum(n):
    levels = tree([n], reduces=True)
    run = simulator.execute("AllReduce", schedules.sum_in_switches(levels), levels, M, n)
    assert collectives.all_reduce(M, *levels, in_switch=True) == collectives.all_reduce(M, *levels)
    assert collectives.all_reduce(M, *levels).bandwidth_s <= run.busiest_s


def test_a_network_aggregates_in_a_tree_which_crosses_each_wire_once():
    levels = [Level("leaf", 8, W, 0, reduces=True, port="network")]
    assert collectives.all_reduce(M, *levels, in_switch=True).bandwidth_s == M / W


@pytest.mark.parametrize("sizes", [[4, 3], [2, 4], [2, 2, 3], [8, 2, 2, 2]], ids=str)
@pytest.mark.parametrize("narrowing", [1, 2, 8])
@pytest.mark.parametrize("domains_sum", [True, False])
def test_sums_in_the_switches_of_several_levels(sizes, narrowing, domains_sum):
    inner, *network = tree(sizes, narrowing, reduces=True)
    levels = [replace(inner, reduces=domains_sum), *network]
    n, gains = collectives.chips(*levels), domains_sum and inner.size > 3
    run = simulator.execute("AllReduce", schedules.sum_on_rails(levels, gains), levels, M, n)
    assert collectives.all_reduce(M, *levels, in_switch=True).bandwidth_s == run.busiest_s
    # one step after the other, a domain's switch would carry the array twice: its chips sum
    run = simulator.execute("AllReduce", schedules.sum_on_rails(levels, False), levels, M, n)
    in_turn = collectives.all_reduce(M, *levels, in_switch=True, overlap=False)
    assert (in_turn.bandwidth_s, in_turn.latency_s) == (run.seconds, run.hops_s)


def test_a_switch_that_cannot_sum_is_not_asked_to():
    with pytest.raises(simulator.Broken, match="cannot sum"):
        simulator.execute("AllReduce", schedules.sum_in_switches(tree([4])), tree([4]), M, 4)
    with pytest.raises(ValueError, match="no switch of these levels sums"):
        collectives.all_reduce(M, *tree([4]), in_switch=True)


def test_the_simulator_refuses_what_chips_cannot_do():
    levels = tree([4])
    with pytest.raises(simulator.Broken, match="does not have"):
        simulator.execute("AllGather", [[simulator.Send(0, 1, (2,))]], levels, M, 4)
    with pytest.raises(simulator.Broken, match="promises"):
        simulator.execute("AllGather", schedules.gather(levels)[:0], levels, M, 4)
    twice = [[simulator.Send(1, 0, (0,), add=True)]] * 2
    with pytest.raises(simulator.Broken, match="twice"):
        simulator.execute("ReduceScatter", twice, levels, M, 4)


# --- laws and known figures -------------------------------------------------------------------------------

POD = Cluster.of(chips.H100, 1024)


def test_gathering_on_a_pod_runs_at_the_total_number_of_domains_not_at_the_degree_of_a_switch():
    """The scaling book's max (D - 1) / (D W) over the levels makes this 413 GB/s; a domain takes in 403."""
    took = collectives.all_gather(4 * GB, *POD.levels)
    assert 4 * GB / took.bandwidth_s == approx(400e9 * 128 / 127) == approx(403e9, rel=1e-3)
    degrees = {"NVLink": (8, 450e9), "leaf": (32, 400e9), "spine": (4, 32 * 400e9)}
    book = max((d - 1) / (d * w) for d, w in degrees.values())
    assert 1 / book == approx(413e9, rel=1e-3)


def test_two_domains_gather_at_the_pace_of_nvlink():
    took = collectives.all_gather(4 * GB, *Cluster.of(chips.H100, 16).levels)
    assert 4 * GB / took.bandwidth_s == approx(514e9, rel=1e-3)


def test_an_all_to_all_of_one_array_takes_two_and_a_half_times_as_long_over_two_domains_as_in_one():
    one, two = (
        collectives.all_to_all(1 * GB, *Cluster.of(chips.H100, n).levels).bandwidth_s for n in (8, 16)
    )
    assert two / one == approx(18 / 7)  # 2.57; at the same bytes a chip, twice that
    assert (GB / one, GB / two) == (approx(4.114e12, rel=1e-3), approx(1.6e12))


@pytest.mark.parametrize(("n", "gain"), [(3, 1), (8, 1.556), (72, 1.945)])
def test_what_summing_in_the_switch_gains(n, gain):
    level = Level("NVLink", n, 900e9, 0, reduces=True)
    without = collectives.all_reduce(1 * GB, level).bandwidth_s
    assert without / collectives.all_reduce(1 * GB, level, in_switch=True).bandwidth_s == approx(
        gain, abs=5e-3
    )


@pytest.mark.parametrize(
    ("y", "ms"), [(8, 1.30), (16, 0.629), (32, 0.294), (64, 0.126), (128, 0.042), (256, 0)]
)
def test_an_inner_axis_divides_the_time_once_it_fills_the_domain(y, ms):
    """bf16[8192, 32768] over Y, gathered over the rest of 256 H100; nothing is left to gather at Y = 256."""
    mesh = Cluster.of(chips.H100, 256).mesh(Y=y, X=256 // y)
    took = collectives.all_gather(2 * 8192 * 32768 / y, *mesh.axes("X"))
    assert took.bandwidth_s == approx(ms / 1e3, rel=5e-3)


def test_a_full_mesh_is_as_fast_as_a_switch_for_all_eight_and_seven_times_slower_for_two():
    def gathered(level):
        return 1 * GB / collectives.all_gather(1 * GB, level).bandwidth_s

    switch = Level("NVLink", 8, 450e9)
    full = Level.full_mesh("mesh", 8, 64e9)
    assert gathered(full) == approx(512e9)
    assert gathered(switch) == approx(514e9, rel=1e-3)
    assert gathered(switch.part(2)) / gathered(full.part(2)) == approx(450 / 64)
    assert gathered(switch.part(4)) / gathered(full.part(4)) == approx(450 / 192)
    assert collectives.permute(64 * MB, full).bandwidth_s == approx(1e-3)
    assert collectives.permute(450 * MB, switch).bandwidth_s == approx(1e-3)


def test_oversubscription_slows_what_leaves_a_unit_and_an_all_to_all_most():
    thin = Cluster.of(chips.H100, 1024, oversubscription=4)
    gather, exchange = (
        formula(1 * GB, *thin.levels).bandwidth_s / formula(1 * GB, *POD.levels).bandwidth_s
        for formula in (collectives.all_gather, collectives.all_to_all)
    )
    assert gather == approx(1)  # a unit fetches each byte once for its 256 chips
    assert exchange == approx(4 * (3 / 4) / (127 / 128))


def test_a_dispatch_to_k_experts_reaches_fewer_chips_than_k():
    assert collectives.reach_probability(8, 4) == approx(0.414, abs=5e-4)
    assert collectives.reach_probability(8, 8) < 0.66 < 1
    assert collectives.reach_probability(1, 1) == 1
    with pytest.raises(ValueError, match="at least 1 chip"):
        collectives.reach_probability(0, 1)


def test_nothing_moves_where_there_is_one_chip():
    for formula, _ in PAIRS:
        assert formula(M, *tree([1])).total_s == 0


@pytest.mark.parametrize("formula", [formula for formula, _ in PAIRS])
def test_impossible_arguments_are_refused(formula):
    with pytest.raises(ValueError, match="nbytes=-1: write a number of at least 0"):
        formula(-1, *tree([4]))
    with pytest.raises(ValueError, match="not some of each"):
        formula(1, *tree([4]), Axis(4, True, 1, 0))
    with pytest.raises(ValueError, match="no switch"):
        collectives.all_reduce(1, Axis(4, True, 1, 0), in_switch=True)


def test_results_print_as_one_line():
    assert str(collectives.all_gather(512 * 2**20, *POD.mesh(X=8, Y=128).axes("X"))) == (
        "AllGather, bandwidth-bound: total 1.04 ms, bandwidth 1.04 ms, latency 1 µs"
    )
    assert str(collectives.all_to_all(1 * GB)) == "AllToAll: total 0 s, bandwidth 0 s, latency 0 s"

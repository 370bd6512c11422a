"""Laws of speedup, of the strong-scaling limit, and of strong and weak scaling."""

import pytest

from scalingbook_lib import collectives, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.roofline import scaling
from scalingbook_lib.roofline.scaling import data_parallel

BATCHES = [2**16, 2**20, 2**22, 2**24]
TPUS = [chips.V4, chips.V5E, chips.V5P, chips.V6E, chips.TPU7X]


@pytest.mark.parametrize("B", BATCHES)
@pytest.mark.parametrize("chip", [*TPUS, chips.H100], ids=str)
def test_at_the_knee_the_all_reduce_takes_as_long_as_the_backward_pass(chip, B):
    step = data_parallel(8e9, B, scaling.knee(B, chip), chip)
    assert step.network_s == pytest.approx(step.backward_s, rel=1e-12)


@pytest.mark.parametrize("P", [1e9, 70e9, 1e12])
def test_the_knee_does_not_know_the_model(P):
    knee = scaling.knee(2**22, chips.V5P)
    before, after = (data_parallel(P, 2**22, n, chips.V5P) for n in (knee * 0.99, knee * 1.01))
    assert (before.bound, after.bound) == ("compute-bound", "network-bound")


def test_the_knee_is_one_more_than_the_textbook_says():
    assert scaling.knee(2**22, chips.V5P) == pytest.approx(1 + 2**22 * 2 * 100e9 / 459e12)


def test_a_larger_batch_moves_the_knee_right_and_a_faster_chip_on_the_same_links_moves_it_left():
    assert scaling.knee(2**23, chips.V5P) > scaling.knee(2**22, chips.V5P)
    assert chips.V5P.link_bytes_per_s == chips.TPU7X.link_bytes_per_s
    assert scaling.knee(2**22, chips.TPU7X) < scaling.knee(2**22, chips.V5P)


@pytest.mark.parametrize(
    ("chip", "axes", "tokens"),
    [(chips.V5E, 1, 1970), (chips.V5P, 1, 2295), (chips.V5P, 3, 765), (chips.V6E, 1, 4590),
     (chips.TPU7X, 1, 11535), (chips.V4, 1, 2750), (chips.H100, 1, 2472.5)],
)  # fmt: skip
def test_tokens_per_chip_at_documented_rates(chip, axes, tokens):
    assert rules.data_parallel_tokens(chip, axes=axes) == pytest.approx(tokens, rel=1e-12)


def test_at_ninety_percent_of_the_link_rate_it_is_the_references_constant():
    """How to Scale Your Model: 2,550 for v5p (180e9 bytes/s); 2,189 for v5e."""
    for chip, reference in ((chips.V5P, 2550), (chips.V5E, 2189)):
        assert rules.data_parallel_tokens(chip) / chip.link_achieved_fraction == pytest.approx(
            reference, abs=1
        )


@pytest.mark.parametrize("chip", TPUS, ids=str)
@pytest.mark.parametrize("n", [2, 16, 64])
def test_the_gradients_travel_as_the_ring_all_reduce_says(chip, n):
    ring = chip.axis(n, wrapped=True)
    step = data_parallel(8e9, 2**20, n, chip)
    assert step.network_s == pytest.approx(collectives.all_reduce(2 * 8e9, ring).bandwidth_s)


def test_strong_scaling_is_perfect_up_to_the_knee_and_never_passes_its_limit():
    B, one = 2**22, data_parallel(8e9, 2**22, 1, chips.V5P)
    for n in (1, 16, 256, 1024, 1828):
        assert scaling.strong_efficiency(data_parallel(8e9, B, n, chips.V5P), one) == pytest.approx(1)
    two, eight = (data_parallel(8e9, B, n, chips.V5P) for n in (2, 8))
    assert scaling.strong_efficiency(eight, two) == pytest.approx(1)
    limit = 1.5 * B / rules.data_parallel_tokens(chips.V5P)
    speedups = [one.total_s / data_parallel(8e9, B, 2**e, chips.V5P).total_s for e in range(30)]
    assert speedups == sorted(speedups)
    assert speedups[-1] == pytest.approx(limit, rel=0.01)
    assert max(speedups) < limit * 1.001


def test_weak_scaling_holds_above_c_over_w_and_settles_below_it():
    enough, few = (
        [
            scaling.weak_efficiency(
                data_parallel(8e9, b * n, n, chips.V5P), data_parallel(8e9, b, 1, chips.V5P)
            )
            for n in (2, 64, 4096, 10**6)
        ]
        for b in (2296, 1024)
    )
    assert enough == pytest.approx([1.0] * 4)
    r = 2295
    assert few[-1] == pytest.approx(6 * 1024 / (2 * 1024 + 4 * r), rel=1e-3)
    assert few == sorted(few, reverse=True)


@pytest.mark.parametrize("n", [2, 100, 5000])
def test_overlap_only_helps_and_by_at_most_a_factor_of_two(n):
    none, half, full = (data_parallel(8e9, 2**22, n, chips.V5P, overlap=o).total_s for o in (0.0, 0.5, 1.0))
    assert full < half < none < 2 * full
    assert half == pytest.approx((none + full) / 2)


def test_six_flops_a_parameter_and_token():
    step = data_parallel(70e9, 2**22, 1, chips.V5P)
    assert step.math_s == pytest.approx(6 * 70e9 * 2**22 / 459e12)
    assert step.network_s == 0


def test_a_gpu_is_limited_by_its_hosts_cards_or_by_nvlink_whichever_is_slower():
    assert rules.network_bytes_per_s(chips.H100) == 8 * 50e9
    assert rules.network_bytes_per_s(chips.A100) == 8 * 25e9
    assert rules.network_bytes_per_s(chips.H100) < chips.H100.links * chips.H100.link_bytes_per_s


def test_axes_that_a_chip_does_not_have_are_refused():
    with pytest.raises(ValueError, match="TPU v5e has 2 torus axes, not 3"):
        scaling.knee(2**20, chips.V5E, axes=3)


def test_on_one_chip_both_efficiencies_are_one():
    one = data_parallel(8e9, 4096, 1, chips.V5P)
    assert scaling.strong_efficiency(one, one) == scaling.weak_efficiency(one, one) == 1


def test_a_step_tells_itself():
    assert str(data_parallel(8e9, 2**22, 4096, chips.V5P)) == (
        "4,096 chips: 196 ms, network-bound (math 107 ms, AllReduce 160 ms)"
    )

"""A chip: its rates, links and domains, how it is found by name, and the errors for what it lacks."""

import copy
from dataclasses import replace

import pytest

from scalingbook_lib.machines import chips, energy
from scalingbook_lib.machines.chips import Axis, Chip, SliceError, Source
from scalingbook_lib.units import FP4, FP8, FP16, FP32, INT8


def test_v100_has_a_rate_for_fp16_and_none_for_bf16():
    assert chips.V100.rates() == {"fp16": 125e12}
    assert str(chips.V100).startswith("V100: 125 TFLOPs/s in fp16, 32 GiB")
    with pytest.raises(ValueError, match="no bf16 rate of V100 is known; compute in one of fp16"):
        chips.V100.flops_per_s()
    for compute in (lambda rate: 1e12 / rate, lambda rate: 2 * rate, lambda rate: rate > 1, "{:.3g}".format):
        with pytest.raises(ValueError, match="no bf16 rate of V100 is known; compute in one of fp16"):
            compute(chips.V100.bf16_flops_per_s)
    assert replace(chips.V100) == copy.deepcopy(chips.V100) == chips.V100


def test_a_chip_without_published_rates_has_memory_figures_alone():
    assert "no published rate" in str(chips.M3_ULTRA)
    with pytest.raises(ValueError, match="M3 Ultra has no published compute rate"):
        chips.M3_ULTRA.flops_per_s()
    with pytest.raises(ValueError, match="no bf16 rate of TPU 8t is known; compute in one of fp4"):
        1 / chips.TPU8T.bf16_flops_per_s


def test_through_a_switch_all_links_reach_a_peer_and_in_a_mesh_one():
    assert [chips.H100.domain_bytes_per_s(n) for n in (2, 4, 8)] == [450e9] * 3
    assert [chips.MI300X.domain_bytes_per_s(n) for n in (2, 4, 8)] == [64e9, 192e9, 448e9]
    assert chips.GB200.domain_bytes_per_s(72) == 900e9


@pytest.mark.parametrize(("chip", "size"), [(chips.H100, 9), (chips.H100, 1), (chips.MI300X, 16)])
def test_a_group_beyond_the_domain_is_refused(chip, size):
    with pytest.raises(
        SliceError, match=f"{size} chips do not form a group in one domain of {chip.name}; wr"
    ):
        chip.domain_bytes_per_s(size)


def test_a_tpu_has_no_switched_domain_and_a_mesh_no_torus():
    with pytest.raises(SliceError, match="TPU v5e is joined in a torus; use the bandwidth of the axes"):
        chips.V5E.domain_bytes_per_s()
    with pytest.raises(SliceError, match="MI300X is joined link by link to each other chip"):
        chips.MI300X.axis(8)


@pytest.mark.parametrize(
    ("chip", "dtype"),
    [
        (chips.V5E, FP8),
        (chips.V5E, FP32),
        (chips.TPU7X, INT8),
        (chips.A100, FP8),
        (chips.H100, FP4),
        (chips.V6E, FP16),
    ],
)
def test_asking_for_a_rate_that_a_chip_lacks_is_an_error(chip, dtype):
    with pytest.raises(
        ValueError, match=f"no {dtype.name} rate of {chip.name} is known; compute in one of bf16"
    ):
        chip.flops_per_s(dtype)


def test_a_figure_without_a_source_is_refused():
    with pytest.raises(ValueError, match="bf16_flops_per_s has no source"):
        Chip(
            name="x",
            vendor="y",
            bf16_flops_per_s=1,
            hbm_bytes=1,
            hbm_bytes_per_s=1,
            link_bytes_per_s=1,
            links=1,
            link_achieved_fraction=1,
            chips_per_host=1,
            sources={},
        )


@pytest.mark.parametrize("value", [0, -1.0])
def test_a_figure_that_is_not_positive_is_refused(value):
    with pytest.raises(ValueError, match="TPU v5e: hbm_bytes_per_s is"):
        replace(chips.V5E, hbm_bytes_per_s=value)


@pytest.mark.parametrize(("text", "as_of"), [("", "2026-11-21"), ("a page", "yesterday")])
def test_a_source_needs_words_and_a_date(text, as_of):
    with pytest.raises(ValueError):  # noqa: PT011
        Source(text=text, as_of=as_of)


def test_a_replaced_chip_has_the_new_figure():
    faster = replace(chips.V5E, name="v5e, twice the HBM", hbm_bytes_per_s=2 * chips.V5E.hbm_bytes_per_s)
    assert faster.hbm_bytes_per_s == 2 * chips.V5E.hbm_bytes_per_s
    assert chips.V5E.hbm_bytes_per_s == 819e9
    assert faster != chips.V5E


def test_a_chip_is_found_by_its_aliases():
    assert (chips.find("Trillium"), chips.find("ironwood"), chips.find("v7x")) == (
        chips.V6E, chips.TPU7X, chips.TPU7X,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["TPU v5e", "v5e", "V5E", " tpu V5e"])
def test_a_chip_is_found_in_any_spelling(name):
    assert chips.find(name) is chips.V5E


def test_an_unknown_chip_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no chip 'v9'.*TPU v4, TPU v3, TPU v2"):
        chips.find("v9")


def test_a_chip_prints_its_rate_memory_and_links():
    said = "TPU v5e: 197 TFLOPs/s in bf16, 16 GiB of HBM at 819 GB/s, 4 links of 50 GB/s each way"
    assert str(chips.V5E) == said


def test_an_axis_is_a_ring_by_the_rule_of_its_generation():
    assert [chips.V5E.axis(n).wrapped for n in (2, 4, 8, 16)] == [False, False, False, True]
    assert [chips.V5P.axis(n).wrapped for n in (1, 2, 4, 8, 20, 28)] == [False, False, True, True, True, True]
    assert chips.V5E.axis(4, wrapped=True).bytes_per_s == 2 * chips.V5E.axis(4).bytes_per_s == 100e9


def test_a_gpu_has_no_torus_axis():
    with pytest.raises(SliceError, match="H100 is joined by switches"):
        chips.H100.axis(8)


@pytest.mark.parametrize(("size", "rate", "hop"), [(0, 1, 0), (4, 0, 0), (4, 1, -1)])
def test_an_impossible_axis_is_refused(size, rate, hop):
    with pytest.raises(ValueError, match="write a size of at least 1"):
        Axis(size, True, rate, hop)


def distances(n, wrapped):
    apart = [abs(a - b) for a in range(n) for b in range(n)]
    return [min(d, n - d) for d in apart] if wrapped else apart


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 16, 17])
def test_hops_of_an_axis_equal_those_counted_chip_by_chip(size, wrapped):
    axis = Axis(size, wrapped, 1, 0)
    assert axis.diameter_hops == max(distances(size, wrapped))
    assert axis.mean_hops == pytest.approx(sum(distances(size, wrapped)) / size**2)


def test_an_energy_boundary_prints_its_factor():
    assert str(energy.SITE) == "with their nodes and the site: 1.99 times the chips' power"

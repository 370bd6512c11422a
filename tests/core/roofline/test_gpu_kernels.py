"""Ceilings of GPU kernels agree with counts by hand, a simulated ring of stages, and published counts."""

import itertools
import random

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.occupancy import KernelError
from scalingbook_lib.roofline import gpu_kernels as kernels
from scalingbook_lib.units import KiB

approx = pytest.approx
SIDES = (64, 128, 256)


def tile(chip=chips.B200, rows=128, columns=128, **more):
    return kernels.matmul_tile(chip, rows, columns, **more)


# Tiles


def test_a_stage_counted_by_hand():
    found = tile(rows=128, columns=256, stages=4)
    assert found.cycles_by["math"] == 2 * 128 * 256 * 64 / 8192 == 512
    assert found.cycles_by["SMEM"] == (128 + 256) * 64 * 2 / 128 == 384
    clock_hz = 2250e12 / 148 / 8192
    assert found.cycles_by["L2"] == approx((128 + 256) * 64 * 2 / (21e12 / 148 / clock_hz))
    assert found.cycles_by["latency"] == approx((600e-9 * clock_hz + 512) / 4)
    assert found.smem_bytes == 4 * (128 + 256) * 64 * 2
    assert found.l2_intensity == approx(128 * 256 / (128 + 256))


def test_hopper_reads_the_right_operand_once_for_every_64_rows():
    found = tile(chips.H100, 128, 256, stages=3)
    assert found.cycles_by["SMEM"] == 2 * (64 + 256) * 64 * 2 / 128
    assert found.cycles_by["math"] == 2 * 128 * 256 * 64 / 4096


@pytest.mark.parametrize(("chip", "held"), [(chips.H100, 256), (chips.B200, 128)])
def test_a_pair_loads_half_of_the_right_operand_and_blackwell_stores_half(chip, held):
    alone, pair = tile(chip, 128, 256), tile(chip, 256, 256, sms=2)
    assert pair.cycles_by["math"] == alone.cycles_by["math"]
    assert pair.accumulators == alone.accumulators
    assert pair.cycles_by["L2"] / alone.cycles_by["L2"] == approx((128 + 128) / (128 + 256))
    assert pair.stage_bytes == (128 + held) * 64 * 2
    assert pair.l2_intensity == approx(128)


def simulated(math, latency, stages, count=4000):
    """The busy fraction of a unit that multiplies stages, each of which is loaded into a buffer of a ring."""
    free, end, busy = [0.0] * stages, 0.0, 0.0
    for k in range(count):
        start = max(end, free[k % stages] + latency)  # loaded as soon as its buffer was free
        end = start + math
        free[k % stages] = end
        busy += math
    return busy / end


@pytest.mark.parametrize("seed", range(20))
def test_the_ceiling_of_a_ring_of_stages_is_what_a_simulation_finds(seed):
    draw = random.Random(seed)
    latency_s, stages = draw.uniform(1e-7, 2e-6), draw.randint(1, 6)
    found = tile(rows=256, columns=256, sms=2, stages=stages, latency_s=latency_s)
    math = found.cycles_by["math"]
    assert found.ceiling == approx(simulated(math, latency_s * found.rates.clock_hz, stages), rel=2e-2)


def test_the_stages_needed_are_the_fewest_without_a_limit_by_latency():
    for rows, columns in itertools.product((64, 128), SIDES):
        needed = tile(rows=rows, columns=columns).stages_needed
        assert tile(rows=rows, columns=columns, depth=16, stages=1).stages_needed >= needed
        if needed * tile(rows=rows, columns=columns).stage_bytes <= 227 * KiB:
            assert tile(rows=rows, columns=columns, stages=needed).bound != "latency"
        assert needed == 1 or tile(rows=rows, columns=columns, stages=needed - 1).bound == "latency"


def test_larger_tiles_and_more_stages_never_lower_the_ceiling():
    for chip, side, stages in itertools.product((chips.H100, chips.B200), (64, 128), (1, 2, 3)):
        smaller = tile(chip, side, side, stages=stages).ceiling
        assert smaller <= tile(chip, 128, 128, stages=stages).ceiling + 1e-12
        assert smaller <= tile(chip, side, side, stages=stages + 1).ceiling + 1e-12
        assert tile(chip, side, side, stages=1, blocks=stages).ceiling == approx(smaller)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"stages": 8}, "this block needs 256 KiB of shared memory, but a block has at most 227 KiB"),
        ({"stages": 6, "output_bytes": 64 * KiB}, "use fewer stages or a smaller tile"),
        ({"rows": 256, "columns": 512}, "need 1024 columns of TMEM, but an SM has 512"),
        ({"chip": chips.H100, "rows": 256, "columns": 256}, "take all 65,536 registers"),
        ({"sms": 4}, "shared by 1 or 2 SMs that divide its rows, not by 4"),
        ({"chip": chips.A100}, "A100 has no recorded rates of an SM"),
        ({"rows": 0}, "rows"),
    ],
)
def test_a_block_that_does_not_fit_is_refused_with_the_rule(given, says):
    with pytest.raises(ValueError, match=says):
        tile(**given)
    assert issubclass(KernelError, ValueError)


# Waves and schedules


def test_a_last_wave_counts_as_a_full_one():
    assert kernels.wave_efficiency(132, 132) == 1
    assert kernels.wave_efficiency(133, 132) == 133 / 264


def test_the_example_of_cutlass_takes_eight_tile_times_with_a_fixed_list():
    found = kernels.persistent_schedules(20 * 20, 100, taken=20)
    assert (found.static, found.dynamic, found.gain) == (8, 5, 1.6)


@pytest.mark.parametrize("seed", range(20))
def test_a_dynamic_schedule_is_never_slower_and_as_fast_with_all_sms(seed):
    draw = random.Random(seed)
    tiles, sms = draw.randint(1, 900), draw.randint(2, 160)
    whole = kernels.persistent_schedules(tiles, sms)
    assert whole.static == whole.dynamic == -(-tiles // sms)
    some = kernels.persistent_schedules(tiles, sms, taken=draw.randint(1, sms - 1))
    assert some.static >= some.dynamic >= whole.dynamic
    with pytest.raises(ValueError, match="free"):
        kernels.persistent_schedules(tiles, sms, taken=sms)


def test_the_rectangle_of_the_chapter_feeds_994_flops_per_byte():
    rectangle = kernels.strip_intensity(128, 256, down=12, across=11, tiles=132)
    assert rectangle == approx(12 * 128 * 11 * 256 / (12 * 128 + 11 * 256))
    assert round(rectangle) == 994
    assert kernels.strip_intensity(64, 64, down=8, across=8, tiles=1) == 32
    with pytest.raises(ValueError, match="at most 4"):
        kernels.strip_intensity(64, 64, down=2, across=2, tiles=5)


# Attention


@pytest.mark.parametrize(
    ("queries", "math", "smem", "exponentials"), [(128, 1024, 768, 1024), (256, 2048, 1536, 2048)]
)
def test_the_cycles_of_a_block_are_those_of_flashattention_4(queries, math, smem, exponentials):
    found = kernels.attention_tile(chips.B200, queries=queries)  # arXiv 2603.05451, forward pass
    assert list(found.cycles_by.values()) == [math, smem, exponentials]


def test_exponentials_decide_for_narrow_heads_until_they_are_emulated():
    narrow = kernels.attention_tile(chips.B200, head=64)
    assert (narrow.bound, narrow.ceiling) == ("exponentials", 0.5)
    assert kernels.attention_tile(chips.B200, head=64, emulated=0.5).ceiling == 1
    assert kernels.attention_tile(chips.H100).serial_ceiling == approx(2 / 3)
    with pytest.raises(ValueError, match="from 0 to 1"):
        kernels.attention_tile(chips.B200, emulated=1.5)

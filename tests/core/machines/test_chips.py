"""The catalogue's figures: sourced, dated, and the same as the collected table."""

import csv
import datetime
import re
from pathlib import Path

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import CATALOGUE
from scalingbook_lib.units import DTYPES, GB, GiB

CSV = Path(__file__).parents[3] / "data" / "chips.csv"
RENAMED = {
    "TPU v2": "TPUv2",
    "TPU v3": "TPUv3",
    "TPU v4": "TPUv4",
    "TPU v5e": "TPUv5e",
    "TPU v5p": "TPUv5p",
    "TPU v6e": "TPUv6e (Trillium)",
    "TPU7x": "TPU7x (Ironwood)",
    "V100": "V100-SXM2",
    "A100": "A100-SXM-80G",
    "H100": "H100-SXM",
    "H200": "H200-SXM",
    "B200": "B200-SXM",
    "B300": "B300-SXM",
    "GB200": "GB200 (per GPU, NVL72)",
    "GB300": "GB300 (per GPU, NVL72)",
}  # the others have the catalogue's name in the table
ROWS = {name: RENAMED.get(name, name) for name in CATALOGUE}
COLUMNS = {
    "hbm_GBps": ("hbm_bytes_per_s", 1e9),
    "bf16_dense_TFLOPs": ("bf16_flops_per_s", 1e12),
    "int8_dense_TOPs": ("int8_ops_per_s", 1e12),
    "fp8_dense_TFLOPs": ("fp8_flops_per_s", 1e12),
    "fp4_dense_TFLOPs": ("fp4_flops_per_s", 1e12),
    "links_per_chip": ("links", 1),
    "link_oneway_GBps": ("link_bytes_per_s", 1e9),
    "chips_per_host": ("chips_per_host", 1),
    "clock_MHz": ("clock_hz", 1e6),
    "tdp_W": ("power_w", 1),
}
EVERY_CHIP = pytest.mark.parametrize("chip", CATALOGUE.values(), ids=lambda chip: chip.name)
TPUS = [chip for chip in CATALOGUE.values() if chip.torus]


def rows():
    with CSV.open(newline="") as file:
        return {row["chip"]: row for row in csv.DictReader(file)}


def test_the_catalogue_holds_every_tpu_from_v2_to_ironwood_and_the_gpus():
    assert list(CATALOGUE) == [chip.name for chip in (*chips.TPUS, *chips.GPUS)]
    assert set(RENAMED) <= set(CATALOGUE)
    assert set(ROWS.values()) <= set(rows())
    assert list(chips.TPUS) == TPUS


@EVERY_CHIP
def test_every_figure_has_a_source_with_a_date(chip):
    for figure in chip.figures():
        source = chip.sources[figure]
        assert source.text
        assert datetime.date.fromisoformat(source.as_of) <= datetime.date.today()


@EVERY_CHIP
@pytest.mark.parametrize("column", COLUMNS)
def test_a_figure_is_that_of_the_table_or_says_who_disagrees(chip, column):
    figure, scale = COLUMNS[column]
    printed, value = rows()[ROWS[chip.name]][column], chip.figures().get(figure)
    if printed and value is not None:
        assert value == pytest.approx(float(printed) * scale) or chip.sources[figure].disagreement


@EVERY_CHIP
def test_every_row_of_the_collected_table_is_in_the_catalogue(chip):
    row = rows()[ROWS[chip.name]]
    has = chip.figures()
    lost = {column for column, (figure, _) in COLUMNS.items() if row[column] and figure not in has}
    known = {
        "B200": {"clock_MHz"},  # the highest boost, which does not explain its peak
        "V100": {"bf16_dense_TFLOPs"},  # the row says that its figure is fp16
    }
    assert lost == known.get(chip.name, set())


def test_prices_are_those_of_the_table_on_their_day():
    priced = {chip.name: chip for chip in CATALOGUE.values() if chip.usd_per_hour}
    # every other price of the table was recalled, not read
    assert list(priced) == ["TPU v5e", "TPU v5p", "A100", "H100", "H200", "B200"]
    for name, chip in priced.items():
        row = rows()[ROWS[name]]
        assert chip.usd_per_hour == float(row["price_usd_per_chip_hr"])
        assert chip.sources["usd_per_hour"].as_of in row["price_status"]


@EVERY_CHIP
def test_scale_up_of_a_gpu_is_that_of_the_table(chip):
    if chip.torus:
        return
    row = rows()[ROWS[chip.name]]
    assert chip.domain_bytes_per_s() == float(row["total_oneway_GBps"]) * 1e9


@EVERY_CHIP
def test_capacities_are_the_table_s_number_with_a_prefix_from_the_source(chip):
    printed = float(rows()[ROWS[chip.name]]["hbm_GB"])
    assert chip.hbm_bytes in (printed * GB, printed * GiB)
    assert re.search(r"GiB|MiB|binary", str(chip.sources["hbm_bytes"])) or chip.hbm_bytes == printed * GB


@pytest.mark.parametrize(
    ("chip", "per_axis", "all_axes"),
    [
        (chips.V4, 2750, 917),
        (chips.V5E, 1970, 985),
        (chips.V5P, 2295, 765),
        (chips.V6E, 4590, 2295),
        (chips.TPU7X, 11535, 3845),
    ],
)
def test_machine_balance_against_ici(chip, per_axis, all_axes):
    assert chip.bf16_flops_per_s / chip.axis(16).bytes_per_s == per_axis
    assert chip.bf16_flops_per_s / (chip.links * chip.link_bytes_per_s) == pytest.approx(all_axes, abs=0.5)


def test_documented_links_are_those_from_which_the_reference_takes_nine_tenths():
    for chip, reference in (
        (chips.V4, 45),
        (chips.V5E, 45),
        (chips.V5P, 90),
        (chips.V6E, 90),
        (chips.TPU7X, 90),
    ):
        assert chip.link_bytes_per_s * chip.link_achieved_fraction == pytest.approx(reference * GB)


@pytest.mark.parametrize("chip", [chips.V2, chips.V3, chips.V4, chips.V5E, chips.V5P])
def test_peaks_follow_from_systolic_arrays_and_clocks(chip):
    assert chip.matrix_units * 2 * chip.matrix_side**2 * chip.clock_hz == pytest.approx(
        chip.bf16_flops_per_s, rel=3e-3
    )


def test_an_mxu_of_v6e_counts_as_two_arrays():
    """918 TFLOPs from two MXUs of 256 x 256: at 1.75 GHz one array each would give half."""
    v6e = chips.V6E
    assert v6e.bf16_flops_per_s / (v6e.matrix_units * 2 * v6e.matrix_side**2) == pytest.approx(
        3.5e9, rel=1e-3
    )
    assert "two arrays" in v6e.sources["matrix_units"].disagreement


@pytest.mark.parametrize(
    ("chip", "per_cycle"),
    [
        (chips.V100, 128), (chips.A100, 512), (chips.H100, 1024), (chips.H200, 1024),
        (chips.MI300X, 512), (chips.MI325X, 512), (chips.MI355X, 1024),
    ],
)  # fmt: skip
def test_peaks_follow_from_tensor_cores_and_clocks(chip, per_cycle):
    peak = max(rate for name, rate in chip.rates().items() if name in ("bf16", "fp16"))
    assert chip.matrix_units * per_cycle * chip.clock_hz == pytest.approx(peak, rel=8e-3)


def test_blackwell_needs_less_than_its_highest_clock():
    for chip, ghz in ((chips.B200, 1.856), (chips.GB200, 2.008)):
        assert chip.bf16_flops_per_s / (chip.matrix_units * 2048) == pytest.approx(ghz * 1e9, rel=1e-3)


@pytest.mark.parametrize(
    ("chip", "sms", "lanes_mib", "smem_mib"), [(chips.H100, 132, 33, 33), (chips.B200, 148, 37, 37)]
)
def test_shared_memory_and_registers_are_summed_over_all_sms(chip, sms, lanes_mib, smem_mib):
    assert chip.cores == sms
    assert chip.cores * chip.registers_bytes_per_core == lanes_mib * 2**20
    assert chip.cores * chip.smem_bytes_per_core == smem_mib * 2**20


def test_the_vector_rate_of_v5p_is_the_textbook_s():
    assert chips.V5P.vector_flops_per_s == pytest.approx(1.43e13, rel=5e-3)


@EVERY_CHIP
def test_rates_and_flops_per_s_agree(chip):
    assert {name: chip.flops_per_s(DTYPES[name]) for name in chip.rates()} == chip.rates()

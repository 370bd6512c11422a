"""The catalog's figures: sourced, dated, each once, and equal to what follows from other figures."""

import csv
import datetime
import re
from itertools import groupby
from pathlib import Path

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import CATALOG, table
from scalingbook_lib.units import DTYPES, GB, GiB

TABLES = ("tpus", "nvidia", "amd", "further", "others")
COLUMNS = ["chip", "figure", "value", "source", "says", "but", "url", "read"]
TEXTS = {"vendor", "status", "memory", "joined", "like", "torus"}
FOLDER = Path(chips.__file__).parent
EVERY_CHIP = pytest.mark.parametrize("chip", CATALOG.values(), ids=lambda chip: chip.name)
TPUS = [chip for chip in CATALOG.values() if chip.torus]


def rows(name):
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_catalog_holds_every_tpu_from_v2_to_ironwood_and_the_gpus():
    assert list(CATALOG) == [chip.name for chip in (*chips.TPUS, *chips.GPUS)]
    assert list(chips.TPUS) == TPUS


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"figure": "like", "value": "H101", "source": "h100 datasheet"}, "no chip above is called 'H101'"),
        ({"figure": "power_w", "value": "700", "source": "no page"}, "sources.csv has no source 'no page'"),
        ({"figure": "power_w", "value": "80G", "source": "h100 datasheet"}, "'80G' is not a number"),
        ({"figure": "power_w", "value": "80 Q", "source": "h100 datasheet"}, "a prefix after a space"),
    ],
)
def test_a_wrong_row_of_a_table_is_named(monkeypatch, row, told):
    monkeypatch.setattr(table, "_rows", lambda name: [dict.fromkeys(COLUMNS, "") | {"chip": "New"} | row])
    with pytest.raises(ValueError, match=told):
        table.read("others", known={"H100": chips.H100})


@EVERY_CHIP
def test_every_figure_has_a_source_with_a_date(chip):
    for figure in chip.figures():
        source = chip.sources[figure]
        assert source.text
        assert datetime.date.fromisoformat(source.as_of) <= datetime.date.today()


@pytest.mark.parametrize("table", TABLES)
def test_a_row_is_one_figure_of_one_chip_with_one_source(table):
    """The schema of the tables: what stands in each column."""
    found, cited = rows(table), {row["source"] for row in rows("sources")}
    assert list(found[0]) == COLUMNS
    assert len({(row["chip"], row["figure"]) for row in found}) == len(found)
    assert len({row["chip"] for row in found}) == len([*groupby(row["chip"] for row in found)])
    for row in found:
        assert row["figure"] in TEXTS or re.fullmatch(r"[\d.]+(e-?\d+)?( (T|G|Gi|Mi|Ki))?", row["value"]), row
        # a source of the list and what it says, or a text with a day of its own
        assert row["source"] in cited if row["source"] else row["says"] and row["read"], row
        assert not row["url"] or row["url"].startswith(("http://", "https://"))
        assert datetime.date.fromisoformat(row["read"] or "2026-01-01") <= datetime.date.today()


def test_every_source_of_the_list_is_cited_and_dated():
    cited = {row["source"] for table in TABLES for row in rows(table)}
    listed = rows("sources")
    assert [row["source"] for row in listed if row["source"] not in cited] == []
    assert len({row["source"] for row in listed}) == len(listed)
    assert all(row["text"] and datetime.date.fromisoformat(row["read"]) for row in listed)


def test_a_chip_stands_in_one_table_alone():
    named = [name for table in TABLES for name in {row["chip"] for row in rows(table)}]
    assert sorted(named) == sorted(chips.ALL)


def test_prices_are_those_that_were_read():
    priced = {chip.name: chip for chip in chips.ALL.values() if chip.usd_per_hour}
    assert list(priced) == ["TPU v5e", "TPU v5p", "A100", "H100", "H200", "B200"]
    assert all("on demand" in chip.sources["usd_per_hour"].text for chip in priced.values())


@EVERY_CHIP
def test_the_prefix_of_a_capacity_comes_from_its_source(chip):
    binary = chip.hbm_bytes % GiB == 0
    assert not binary or re.search(r"GiB|MiB|binary", str(chip.sources["hbm_bytes"]))


@pytest.mark.parametrize(
    ("name", "scale_up"),
    [("V100", 150), ("A100", 300), ("H100", 450), ("H200", 450), ("B200", 900), ("B300", 900), ("GB200", 900),
     ("GB300", 900), ("MI300X", 448), ("MI325X", 448), ("MI355X", 535.5), ("Gaudi3", 525), ("H800", 200),
     ("A800", 200), ("H20", 450), ("H200 NVL", 450), ("Rubin", 1800)],
)  # fmt: skip
def test_scale_up_is_half_of_what_the_vendor_prints_for_both_ways(name, scale_up):
    assert chips.find(name).domain_bytes_per_s() == scale_up * GB


@pytest.mark.parametrize(
    ("name", "bits", "gbps"),
    [("V100", 4096, 1.75), ("A100", 5120, 3.186), ("A100 40GB", 5120, 2.43), ("H100", 5120, 5.24),
     ("H200", 6144, 6.25), ("MI300X", 8192, 5.2), ("MI325X", 8192, 6.0), ("MI355X", 8192, 8.0),
     ("T4", 256, 10), ("L4", 192, 12.5), ("L40S", 384, 18), ("A10", 384, 12.5), ("A40", 384, 14.5),
     ("RTX 3090", 384, 19.5), ("RTX 4090", 384, 21), ("RTX 5090", 512, 28), ("RTX PRO 6000 WS", 512, 28),
     ("RTX PRO 6000 SE", 512, 24.962), ("MI250X GCD", 4096, 3.2)],
)  # fmt: skip
def test_bandwidths_follow_from_the_width_and_the_rate_of_the_memory_bus(name, bits, gbps):
    """An oracle beside the datasheets: bits of the bus, times the data rate of a pin, over 8."""
    assert chips.find(name).hbm_bytes_per_s == pytest.approx(bits * gbps / 8 * 1e9, rel=0.03)


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


@pytest.mark.parametrize(
    ("chip", "n", "words"),
    [
        (chips.H100, 1, "1 H100"),
        (chips.H100, 1024, "1,024 H100s"),
        (chips.MI300X, 8, "8 MI300Xs"),
        (chips.V5P, 1, "1 TPU v5p chip"),
        (chips.V5P, 6144, "6,144 TPU v5p chips"),
    ],
)
def test_a_sentence_names_several_chips_in_the_plural(chip, n, words):
    assert chip.counted(n) == words

"""Tests of published kernel measurements: none beats its roofline, and the knee is where it is predicted."""

from dataclasses import replace

import pytest

from scalingbook_lib import collectives, roofline, rules
from scalingbook_lib.evidence import measured
from scalingbook_lib.evidence.resources import rows
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP8

IRONWOOD_DEVICE = replace(
    chips.TPU7X,
    name="half a TPU7x",
    bf16_flops_per_s=chips.TPU7X.bf16_flops_per_s / 2,
    hbm_bytes_per_s=chips.TPU7X.hbm_bytes_per_s / 2,
)
SYSTEMS = {
    "TPU7x (per device = half chip)": IRONWOOD_DEVICE,
    "TPUv6e": chips.V6E,
    "A100-SXM4-80GB": chips.A100,
    "H100 80GB HBM3": chips.H100,
    "B200": chips.B200,
}
DTYPES = {"bf16": BF16, "fp8": FP8}


def matmuls(system=None, dtype=None, width=None):
    found = [row for row in rows("kernels") if row["op"] == "gemm"]
    wanted = {"system": system, "dtype": dtype, "n": width}
    return [row for row in found if all(value in (None, row[key]) for key, value in wanted.items())]


def predicted(row):
    B, D, F = (int(row[key]) for key in "mkn")
    return roofline.matmul(B, D, F, SYSTEMS[row["system"]], DTYPES[row["dtype"]], out=BF16)


def test_every_row_names_its_source():
    assert all(row["source"].strip() for row in (*rows("kernels"), *rows("collectives")))


@pytest.mark.parametrize(
    "row", matmuls(), ids=lambda row: f"{row['system']}-{row['dtype']}-{row['m']}x{row['n']}"
)
def test_no_measured_matmul_beats_its_roofline(row):
    assert float(row["latency_us"]) / 1e6 >= predicted(row).lower_s


@pytest.mark.parametrize(("system", "knee"), [("H100 80GB HBM3", 306), ("A100-SXM4-80GB", 156)])
def test_measured_time_is_flat_up_to_the_knee_and_then_grows_with_the_batch(system, knee):
    """bf16, 16,384 wide: up to half the knee it costs what one token costs, far above it grows with B."""
    seconds = {int(row["m"]): float(row["latency_us"]) for row in matmuls(system, "bf16", "16384")}
    assert rules.matmul_critical_batch(16384, 16384, SYSTEMS[system]) == pytest.approx(knee, abs=1)
    below, above = max(m for m in seconds if m <= knee / 2), min(m for m in seconds if m >= 4 * knee)
    assert seconds[below] / seconds[1] < 1.1
    assert seconds[8 * above] / seconds[above] == pytest.approx(8, rel=0.15)


def test_a_single_token_reads_weights_at_most_of_the_bandwidth():
    for row in matmuls("H100 80GB HBM3", "bf16", "16384"):
        if int(row["m"]) <= 32:
            assert 0.8 < predicted(row).lower_s / (float(row["latency_us"]) / 1e6) <= 1


def test_trillium_copies_at_83_percent_of_its_documented_bandwidth():
    (copy,) = [row for row in rows("kernels") if row["op"] == "hbm_copy"]
    assert float(copy["hbm_GBps"]) * 1e9 / chips.V6E.hbm_bytes_per_s == pytest.approx(0.83, abs=0.005)


@pytest.mark.parametrize("size_bytes", ["33554432", "131072"])
def test_measured_all_gathers_on_a_line_are_slower_than_the_link_bound(size_bytes):
    (row,) = [
        r for r in rows("collectives") if r["system"] == "TPU v5e 8x4" and r["size_bytes"] == size_bytes
    ]
    least = collectives.all_gather(int(size_bytes), chips.V5E.axis(int(row["n_devices"]))).total_s
    assert least < float(row["time_us"]) / 1e6 < 3 * least


def test_nccl_reports_bus_bandwidth_as_the_text_says():
    large = [row for row in rows("collectives") if row["busbw_GBps"] and int(row["size_bytes"]) > 2**20]
    gathers = [
        row for row in large if row["time_us"] and row["collective"] in ("all_gather", "reduce_scatter")
    ]
    assert len(gathers) > 10
    for row in gathers:
        n, algbw = int(row["n_devices"]), int(row["size_bytes"]) / float(row["time_us"]) / 1e3
        assert algbw * (n - 1) / n == pytest.approx(float(row["busbw_GBps"]), rel=0.01)


def test_only_in_network_reductions_exceed_the_link_bandwidth():
    hopper = [row for row in rows("collectives") if row["system"].startswith(("H100", "H200"))]
    wire = chips.H100.links * chips.H100.link_bytes_per_s / 1e9
    faster = [row for row in hopper if float(row["busbw_GBps"] or 0) > wire]
    assert {row["collective"] for row in faster} == {"all_reduce"}
    assert not any(row["algo_or_tool"].startswith("Ring") for row in faster)


def carried(row):
    """A row of kernels.csv as the library's own measurement has it, without the source."""
    kind = predicted(row)
    return (SYSTEMS[row["system"]].name, int(row["m"]), kind.flops, kind.bytes, float(row["latency_us"]))


def test_the_library_reads_every_row_once():
    own = [
        (m.chip.name, m.batch, m.roofline.flops, m.roofline.bytes, round(1e6 * m.seconds, 6))
        for m in measured.MATMULS
    ]
    assert sorted(own) == sorted(carried(row) for row in matmuls())
    assert len(own) == 82


def test_every_measurement_names_the_file_of_its_row_and_the_day_it_was_read():
    files = {row["source"].split(", ")[-1] for row in matmuls("H100 80GB HBM3")}
    assert {m.source.text.split(", ")[-1] for m in measured.SWEEPS["H100, bf16, 4,096 wide"].rows} == files
    assert all(m.source.url and m.source.as_of == "2026-11-21" for m in (*measured.MATMULS, measured.COPY))


def test_the_hbm_copy_is_the_row_of_the_table():
    (row,) = [row for row in rows("kernels") if row["op"] == "hbm_copy"]
    assert round(1e6 * measured.COPY.seconds, 6) == float(row["latency_us"])
    rate = measured.COPY.roofline.bytes / measured.COPY.seconds
    assert rate / 1e9 == pytest.approx(float(row["hbm_GBps"]), rel=1e-4)
    assert str(measured.COPY).endswith("41 µs: 83% of the roofline")


@pytest.mark.parametrize("name", measured.SWEEPS)
def test_a_sweep_is_named_after_its_chip_dtype_and_width(name):
    sweep = measured.SWEEPS[name]
    assert name == f"{sweep.chip.name}, {sweep.dtype.name}, {sweep.width:,} wide"
    assert [row.roofline.bound == "compute-bound" for row in sweep.rows] == [
        row.batch > sweep.break_even for row in sweep.rows
    ]

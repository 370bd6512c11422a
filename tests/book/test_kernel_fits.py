"""Tests of the kernel and collective fits against every measurement."""

import json
from collections import defaultdict
from dataclasses import replace
from math import prod

import pytest

from scalingbook_lib.calibrated import fabrics, kernels, records
from scalingbook_lib.evidence import fabric_fit, kernel_fit
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.roofline.attained import Products
from scalingbook_lib.units import BF16, FP4, FP8, FP16, INT8
from tools import kernel_fits, scored_rows

MIB = 2**20


def within(errors, share):
    """The share of errors that are at most this large."""
    return sum(abs(error) <= share for error in errors) / len(errors)


@pytest.fixture(scope="module")
def product_errors():
    """Predicted over measured, minus 1, for matmuls of at least 512 rows and for smaller ones."""
    errors = defaultdict(list)
    for name, row in _own_products():
        if "_block" not in name:
            one = kernels.products(row.chip, row.dtype)
            found = one.seconds(row.B, row.D, row.F, row.chip, row.dtype)
            errors[row.B >= 512].append(found / row.seconds - 1)
    return errors


@pytest.fixture(scope="module")
def collective_rows():
    return [
        (name, row.nbytes / (_chips(row) if row.what == "AllToAll" else 1), row)
        for name, row in kernel_fits.collectives()
    ]


def test_large_matmuls_are_predicted_within_20_percent(product_errors):
    assert within(product_errors[True], 0.2) > 0.88


def test_most_small_matmuls_are_predicted_within_20_percent(product_errors):
    assert within(product_errors[False], 0.2) > 0.77


def test_grouped_matmuls_are_predicted_within_10_percent_on_average():
    errors = []
    for name, row in kernel_fits.grouped_products():
        if "dense" not in name:
            one = kernels.grouped(row.chip, row.dtype)
            # at the measured share, not at that of the chip's dense kernels
            measured = records.record("kernel_fits")["grouped"][name]
            found = replace(one, flops=measured["flops"]).seconds(*row[2:6], row.chip, row.dtype)
            errors.append(abs(found / row.seconds - 1))
    assert len(errors) == 220
    assert sum(errors) / len(errors) < 0.1


def test_grouped_matmuls_reach_less_than_dense_ones_most_of_all_in_fp8():
    assert 0.9 < kernels.grouped_ratio(BF16) < 1
    assert kernels.grouped_ratio(FP8) < 0.85
    assert kernels.grouped_ratio("mxfp8") == kernels.grouped_ratio(BF16)
    few, many = (kernels.grouped(chips.H100, BF16).seconds(8, m, 4096, 2048, chips.H100) for m in (1, 128))
    assert few == pytest.approx(many, rel=0.1)  # one tile, and the same weights


def test_small_matmuls_depend_on_the_kernel_library():
    """Launch overheads differ by library; with the library's own fit nearly all are close."""
    errors = defaultdict(list)
    for table_row, (name, row) in zip(_product_rows(), _own_products(), strict=True):
        by = kernels.kernel_library(table_row["source"])
        if by and "_block" not in name:
            one = kernels.products(row.chip, row.dtype, by)
            found = one.seconds(row.B, row.D, row.F, row.chip, row.dtype)
            errors[row.B >= 512].append(found / row.seconds - 1)
    assert within(errors[True], 0.2) > 0.92
    assert within(errors[False], 0.2) > 0.9


@pytest.mark.parametrize(
    ("table", "kind", "near", "least"),
    [
        ("kernels", "products m >= 512", 0.2, 0.82),
        ("kernels", "products m < 512", 0.2, 0.83),
        ("kernels", "attention prompt", 0.2, 0.86),
        ("kernels", "attention decode", 0.2, 0.79),
        ("collectives", "collectives >= 1 MiB", 0.2, 0.68),
        ("collectives", "collectives < 1 MiB", 0.4, 0.87),
    ],
)
def test_matmuls_of_an_unfitted_chip_are_predicted(table, kind, near, least):
    """Every row is predicted without its chip, as the accuracy page prints it."""
    rows = [one for one in scored_rows.entries(table) if one.found.kind == kind]
    errors = [one.out["chip"] for one in rows if one.out]
    assert len(errors) > 0.99 * len(rows)
    assert within(errors, near) > least


@pytest.mark.parametrize("chip", ["H200", "H100", "GB200", "GB300"])
def test_collectives_of_an_unfitted_chip_follow_its_link_generation(chip):
    rows = [one for one in scored_rows.entries("collectives") if one.found.chip == chip]
    for large, near, least in ((True, 0.2, 0.8), (False, 0.4, 0.85)):
        errors = [one.out["chip"] for one in rows if one.found.kind.endswith(">= 1 MiB") == large]
        assert within(errors, near) > least


@pytest.mark.parametrize("chip", [chips.A100, chips.H100])
def test_faster_cores_reach_a_smaller_share_of_their_peak(chip):
    """Extrapolation from the vendor's other chips is closer than the mean of all chips."""
    rows = [row for _, row in _own_products() if row.chip == chip and row.B >= 512]

    def off(of):
        found = [of(row.dtype).seconds(row.B, row.D, row.F, row.chip, row.dtype) for row in rows]
        return sum(abs(s / row.seconds - 1) for s, row in zip(found, rows, strict=True)) / len(rows)

    with kernel_fits.without(json.loads(kernel_fits.LEFT_OUT.read_text())[chip.name]):
        joined = records.record("kernel_fits")["products"]
        mean = off(lambda dtype: Products(**joined[f"GPU | {dtype}"]))
        assert off(lambda dtype: kernels.products(chip, dtype)) < 0.9 * mean
    assert kernels.products(chips.L40S, FP8).flops > kernels.products(chips.RTX_PRO_6000, FP4).flops > 0.7


def test_the_recorded_fit_is_restored_after_the_context():
    before = kernels.products(chips.A100, BF16)
    changes = json.loads(kernel_fits.LEFT_OUT.read_text())["A100"]
    with kernel_fits.without(changes):
        assert kernels.products(chips.A100, BF16).name == "GPU | bf16"
        assert fabrics.fabric(chips.A100).name == "NVLink 4"
    assert kernels.products(chips.A100, BF16) == before


def test_the_recorded_leave_one_out_fits_are_up_to_date():
    """All chips are listed, and a sample of rows is fitted again."""
    record = json.loads(kernel_fits.LEFT_OUT.read_text())
    assert list(record) == ["date", *kernel_fits.measured_chips()]
    products = kernel_fits.grouped(kernel_fits.products(), "TPU v6e")["TPU | bf16"]
    attention = kernel_fits.grouped(_attended(), "H100")["GPU"]
    collectives = kernel_fits.grouped(kernel_fits.collectives(), "H100")["NVLink 4"]
    again = [
        kernel_fit.fit_products(products),
        kernel_fit.fit_attention(attention),
        fabric_fit.fit(collectives),
    ]
    assert list(map(kernel_fits.rounded, again)) == [
        record["TPU v6e"]["products"]["TPU | bf16"],
        record["H100"]["attention"]["GPU"],
        record["H100"]["fabrics"]["NVLink 4"],
    ]


@pytest.mark.parametrize(("table", "least"), [("attention", 0.98), ("decode_attention", 0.84)])
def test_attention_is_predicted_within_20_percent(table, least):
    rows = [row for name, row in kernel_fits.attended(table) if name != "GPU"]
    errors = [
        kernel_fit.predicted_attention_s(kernels.attention(row.chip), row) / row.seconds - 1 for row in rows
    ]
    assert within(errors, 0.2) > least


@pytest.mark.parametrize(("large", "share", "least"), [(True, 0.2, 0.88), (False, 0.4, 0.95)])
def test_collectives_are_predicted_at_every_size(collective_rows, large, share, least):
    errors = [
        fabric_fit.predicted_s(row) / row.seconds - 1
        for _, size, row in collective_rows
        if (size >= MIB) == large
    ]
    assert within(errors, share) > least


@pytest.mark.parametrize("engine", ["trtllm", "vllm"])
def test_unfitted_libraries_have_the_same_large_matmuls(engine):
    """Large bf16 matmuls, which use the same vendor library."""
    groups = defaultdict(lambda: ([], []))
    for table_row, (name, row) in zip(_product_rows(), _own_products(), strict=True):
        if name.endswith("bf16") and row.B >= 512:
            groups[name][engine in table_row["source"]].append(row)
    errors = []
    for seen, new in groups.values():
        if len(seen) > 20 and new:
            one = kernels.Products(**kernel_fit.fit_products(seen))
            errors += [one.seconds(r.B, r.D, r.F, r.chip, r.dtype) / r.seconds - 1 for r in new]
    assert within(errors, 0.2) > 0.8


def _chips(row):
    return prod(network.size for network in row.networks)


def _attended():
    return [*kernel_fits.attended("attention"), *kernel_fits.attended("decode_attention")]


def _product_rows():
    return kernel_fits.rows(kernel_fits.ROOT / "data/products.csv")


def _own_products():
    every = ((name.split(" | "), row) for name, row in kernel_fits.products())
    return [
        (" | ".join(name), row) for name, row in every if name[0] not in ("GPU", "TPU") and len(name) == 2
    ]


def test_the_recorded_fits_are_up_to_date(collective_rows):
    """A sample of rows, to three digits; all of them take seconds."""
    record = records.record("kernel_fits")
    rows = [row for name, row in kernel_fits.products() if name == "H100 | bf16"]
    links = [row for name, _, row in collective_rows if name == "PCIe 5"]
    assert kernel_fits.rounded(kernel_fit.fit_products(rows)) == record["products"]["H100 | bf16"]
    assert kernel_fits.rounded(fabric_fit.fit(links)) == record["fabrics"]["PCIe 5"]


def test_a_chip_without_measurements_takes_its_nearest_variant_and_names_it():
    assert kernels.products(chips.H200, BF16).name == "H100 | bf16"
    assert kernels.products(chips.B300, FP8).name == "B200 | fp8"
    assert kernels.products(chips.A100, FP16).name == "A100 | bf16"
    assert kernels.products(chips.H100, INT8).name == "H100 | fp8"
    assert kernels.products(chips.MI300X, FP8).name == "GPU | fp8"
    assert kernels.products(chips.V5E, INT8).name == "TPU | bf16"
    assert fabrics.fabric(chips.V100).name == "NVLink 4"


@pytest.mark.parametrize("dtype", [BF16, FP8, FP4])
def test_a_predicted_matmul_is_never_faster_than_its_bound(dtype):
    one = kernels.products(chips.B200, dtype)
    times = [one.seconds(B, 8192, 8192, chips.B200, dtype) for B in (1, 16, 256, 4096, 65536)]
    assert times == sorted(times)
    assert times[-1] > 2 * 65536 * 8192**2 / chips.B200.flops_per_s(dtype)


def test_collective_times_grow_with_array_size_and_chips():
    one = fabrics.fabric(chips.H100)
    sizes = [one.seconds("all-gather", 2.0**k, *Cluster.of(chips.H100, 8).levels) for k in range(10, 34, 2)]
    assert sizes == sorted(sizes)
    ways = [one.seconds("all-gather", 2.0**10, *Cluster.of(chips.H100, n).levels) for n in (1, 2, 4, 8, 16)]
    assert ways == sorted(ways)
    assert ways[0] == 0


def test_fits_print_as_sentences():
    assert str(kernels.products(chips.H100, BF16)).startswith("H100 | bf16: 2.98 µs, then 78% of peak FLOP/s")
    assert "launch" in str(fabrics.fabric(chips.H100))
    assert "tokens" in str(kernels.attention(chips.H100))

"""What a reader's own device attains: the record, and the plans that are made with it."""

import json
from pathlib import Path

import pytest

from scalingbook_lib.calibrated import kernels
from scalingbook_lib.evidence import local_benchmark
from scalingbook_lib.evidence.local_benchmark import COPY, PRODUCT, PROMPT, DeviceBenchmark, TimedOperation
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16


def product(B, seconds=None):
    """A product of an H100, as long as the table says."""
    told = kernels.products(chips.H100, BF16).seconds(B, 4096, 4096, chips.H100)
    return TimedOperation(
        what=PRODUCT, dtype="bf16", sizes=(B, 4096, 4096), seconds=seconds or told, predicted_s=told
    )


@pytest.fixture(scope="module")
def survey():
    copy = TimedOperation(what=COPY, dtype="bf16", sizes=(2**28,), seconds=2**30 / 3e12, predicted_s=4e-4)
    prompt = TimedOperation(
        what=PROMPT, dtype="bf16", sizes=(1, 4096, 32, 32, 128), seconds=5e-4, predicted_s=4e-4
    )
    rows = (*map(product, (1, 16, 128, 512, 2048, 8192)), copy, prompt)
    return DeviceBenchmark(
        device="NVIDIA H100", chip="H100", count=1, jax="0.12", date="2026-11-22", rows=rows
    )


@pytest.fixture
def record(survey, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(survey.json())
    return path


def test_a_record_is_read_as_it_was_written(survey, record):
    assert DeviceBenchmark.read(record) == survey


def test_the_shares_of_the_peaks_are_those_that_were_timed(survey):
    found, line = survey.shares_of_peak(chips.H100), kernels.products(chips.H100, BF16)
    assert found["matmul"] == pytest.approx(line.flops, rel=0.02)
    assert found["weights"] == pytest.approx(line.hbm, rel=0.05)
    assert found["memory"] == pytest.approx(3e12 / chips.H100.hbm_bytes_per_s, rel=1e-6)
    assert 0 < found["attention"] < 1


@pytest.mark.parametrize(
    "line",
    ["plan llama-3-8b h100:8 --batch 64 --json", "serve llama-3-8b h100 --batch 16 --as-written --json"],
)
def test_plan_and_serve_take_a_record(ask, record, line):
    mine = ask(f"{line} --efficiency {record}").values
    peak = ask(f"{line} --efficiency peak").values
    name = "step_time_s" if "plan" in line else "itl_s"
    assert mine["efficiency"].startswith(("measured on NVIDIA H100", "NVIDIA H100"))
    assert _find(mine, name) > 1.1 * _find(peak, name)


def _find(values, name):
    if name in values:
        return values[name]
    found = [v for one in values.values() if isinstance(one, dict) if (v := _find(one, name))]
    return found[0] if found else None


def test_a_record_of_another_chip_is_refused(ask, record):
    told = ask(f"plan llama-3-8b v5e:4x4 --batch 64 --efficiency {record}")
    assert told.code == 2
    assert "this record is of H100, and the machine has TPU v5e" in told.err


def test_a_record_of_half_a_chip_is_one_of_the_chip(ask, tmp_path):
    """To JAX a TPU7x is two devices; each reaches the shares of its own half's peaks."""
    half, asked = local_benchmark.chip_of_device("TPU7x"), local_benchmark.chip_of_device("TPU v5 lite")
    assert half is chips.HALF_TPU7X
    assert asked is chips.V5E
    rows = []
    for B in (1, 16, 128, 512, 2048, 8192):
        told = kernels.products(half, BF16).seconds(B, 4096, 4096, half)
        sizes = (B, 4096, 4096)
        rows.append(TimedOperation(what=PRODUCT, dtype="bf16", sizes=sizes, seconds=told, predicted_s=told))
    rows.append(
        TimedOperation(what=COPY, dtype="bf16", sizes=(2**28,), seconds=2**30 / 3e12, predicted_s=4e-4)
    )
    record = DeviceBenchmark(
        device="TPU7x", chip=half.name, count=8, jax="0.12", date="2026-11-22", rows=tuple(rows)
    )
    found = record.shares_of_peak(chips.TPU7X)
    assert found["matmul"] == pytest.approx(kernels.products(chips.TPU7X, BF16).flops, rel=0.05)
    assert found["memory"] == pytest.approx(2 * 3e12 / chips.TPU7X.hbm_bytes_per_s)
    path = tmp_path / "mine.json"
    path.write_text(record.json())
    told = ask(f"plan llama-3-8b tpu7x:2x2x1 --batch 64 --efficiency {path}")
    assert told.code == 0, told.err
    assert ask(f"plan llama-3-8b v5e:4x4 --batch 64 --efficiency {path}").code == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [{}]}', '{"rows": 3}', "\xff"])
def test_what_is_no_record_is_refused_in_one_sentence(ask, tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="latin-1")
    told = ask(f"plan llama-3-8b h100:8 --batch 64 --efficiency {path}")
    assert told.code == 2
    assert "is no record of `scalingbook measure`" in told.err


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("TPU v5 lite", "TPU v5e"),
        ("TPU v5", "TPU v5p"),
        ("TPU v6 lite", "TPU v6e"),
        ("TPU7x", "half a TPU7x"),
        ("cpu", None),
    ],
)
def test_devices_are_known_by_the_names_that_jax_has(kind, name):
    found = local_benchmark.chip_of_device(kind)
    assert (found.name if found else None) == name


def test_this_machine_is_measured(ask, tmp_path):
    """On a CPU: every operation has a time; what it is beside is no assertion, as others use the machine."""
    told = ask(f"measure --json --out {tmp_path}/cpu.json --drawing {tmp_path}/cpu.svg")
    assert {row["what"] for row in told.values["rows"]} >= {PRODUCT, COPY, PROMPT}
    assert all(row["measured_s"] > 0 and row["predicted_s"] > 0 for row in told.values["rows"])
    assert DeviceBenchmark.read(tmp_path / "cpu.json").rows
    assert (tmp_path / "cpu.svg").read_text().startswith("<svg")
    assert json.loads(Path(tmp_path / "cpu.json").read_text())["device"] == told.values["device"]


@pytest.mark.parametrize("line", ["plan gpt-2 {} --batch 8 --sequence 1024", "serve gpt-2 {} --prompt 512"])
def test_a_device_that_no_catalog_has_is_a_machine_by_its_record(ask, tmp_path, line):
    """A CPU: its own best rates are its peaks, of which its products reach a part."""
    rows = [
        TimedOperation(what=PRODUCT, dtype="fp32", sizes=(B, 256, 256), seconds=s, predicted_s=s)
        for B, s in ((1, 1e-5), (16, 2e-5), (128, 1e-4), (512, 4e-4))
    ]
    rows.append(TimedOperation(what=COPY, dtype="fp32", sizes=(2**22,), seconds=1e-3, predicted_s=1e-3))
    cpu = DeviceBenchmark(device="cpu", chip="", count=1, jax="0.12", date="2026-11-22", rows=tuple(rows))
    assert cpu.as_chip().bf16_flops_per_s == pytest.approx(2 * 512 * 256**2 / 4e-4)
    assert 0.5 < cpu.shares_of_peak(cpu.as_chip())["matmul"] <= 1
    path = tmp_path / "cpu.json"
    path.write_text(cpu.json())
    told = ask(f"{line.format(path)} --efficiency {path}")
    assert told.code == 0, told.err
    assert "cpu" in told.out
    assert ask(f"plan llama-3-8b h100:8 --batch 8 --efficiency {path}").code == 2

"""Tests that the guide to runtimes is up to date."""

import csv
import re
import tomllib

import pytest

from scalingbook_lab import devices
from scalingbook_lib import models
from scalingbook_lib.machines import chips
from tools import first_cell, notebooks, pages
from tools.environment import ROOT

PAGE = (ROOT / "runtimes.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())
V5E, GIB = chips.V5E, 2**30
SMALL, LARGE = (models.find(f"Llama 3 {size}").params / GIB for size in ("8B", "70B"))


@pytest.mark.parametrize(
    ("says", "computed"),
    [
        ("One v5e has {:.0f} GiB", V5E.hbm_bytes / GIB),
        ("take {:.1f} GiB, which", 2 * SMALL),
        ("leaves {:.1f} GiB for everything else", V5E.hbm_bytes / GIB - 2 * SMALL),
        ("Eight v5e have {:.0f} GiB", 8 * V5E.hbm_bytes / GIB),
        ("{:.2f} PFLOPs/s", 8 * V5E.bf16_flops_per_s / 1e15),
        ("{:.2f} TB/s", 8 * V5E.hbm_bytes_per_s / 1e12),
        ("Llama 3 70B takes {:.0f} GiB in bf16 and does not fit", 2 * LARGE),
        ("{:.2f} USD per chip per hour", V5E.usd_per_hour),
        ("{:.2f} USD per GPU per hour", chips.H100.usd_per_hour),
        ("would cost {:.0f} USD", 8 * 20 * V5E.usd_per_hour),
    ],
)
def test_a_figure_is_what_the_library_computes(says, computed):
    assert says.format(computed) in FLAT


def test_the_models_that_are_said_to_fit_do_fit():
    assert V5E.hbm_bytes / GIB > 2 * SMALL
    assert LARGE < 8 * V5E.hbm_bytes / GIB < 2 * LARGE


def test_every_price_has_a_day_and_a_source():
    rows = PAGE.split("| source, as of |\n|---|---|---|\n")[1].split("\n\n")[0].splitlines()
    assert len(rows) == 7
    assert all(re.search(r", 20\d\d-\d\d(-\d\d)? \|$", row) for row in rows)
    assert all("https://" in row or "sources`" in row for row in rows)
    for chip, sold in ((V5E, "TPU v5e on demand"), (chips.H100, "H100 on demand")):
        (row,) = (row for row in rows if sold in row)
        assert chip.sources["usd_per_hour"].as_of in row


def test_versions_are_those_that_are_tested():
    colab = dict(re.findall(r"^([a-z]+)==(\S+?)[;\s]", (ROOT / "tools/colab.txt").read_text(), re.MULTILINE))
    assert f"JAX {colab['jax']}" in FLAT
    assert f"NumPy {colab['numpy']} and ipywidgets {colab['ipywidgets']}" in FLAT
    assert f"{colab['libtpu']} is the first" in FLAT
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    (jax,) = (package["version"] for package in lock["package"] if package["name"] == "jax")
    assert f"({'.'.join(jax.split('.')[:2])})" in FLAT


def test_quoted_program_output_is_up_to_date():
    with pytest.raises(RuntimeError, match="restart the kernel and run this cell first"):
        devices.get(10**6)
    assert first_cell.NOWHERE.startswith("the book's library is neither installed nor next to this notebook")
    assert "the library in this notebook is damaged" in first_cell.carrying("")
    assert str(devices.Devices("tpu", "TPU v5 lite", 8, False)).startswith("8 real TPU devices")
    assert str(devices.Devices("cpu", "cpu", 8, True)).startswith("8 simulated devices")
    for quoted in (
        "`restart the kernel and run this cell first`",
        "`the book's library is neither installed nor next to this notebook`",
        "`the library in this notebook is damaged`",
        '"8 real TPU devices"',
        '"8 simulated devices"',
    ):
        assert quoted in PAGE


def test_each_notebook_is_listed_with_the_real_devices_that_ran_it():
    rows = [
        line[2:-2].split(" | ")
        for line in PAGE.split("their solutions |\n")[1].split("\n\n")[0].splitlines()[1:]
    ]
    titles = dict(
        re.findall(r"^\| \[(.+?)\]\(chapters/(\w+)\.md\)", (ROOT / "README.md").read_text(), re.MULTILINE)
    )
    with (ROOT / "data/real_runs.csv").open(encoding="utf-8", newline="") as file:
        ran = {
            row["notebook"]: f"{row['device']}, {row['date']}, {row['versions']}"
            for row in csv.DictReader(file)
        }
    told = {
        f"{folder}/{titles[title]}": cell
        for title, *cells in rows
        for folder, cell in zip(("chapters", "exercises", "solutions"), cells, strict=True)
        if cell != "above"  # the second of two chapters that share their exercises
    }
    deeper = {str(page) for page in pages.every() if page.deeper}  # which stand below their chapter's line
    assert told == {str(n): ran.get(str(n), "not yet") for n in notebooks.every() if str(n) not in deeper}
    assert ran.keys() <= told.keys()


def test_the_way_to_colab_has_three_steps():
    way = PAGE.split("(runtimes-colab)=")[1].split("**Kaggle.**")[0]
    assert re.findall(r"^(\d)\. ", way, re.MULTILINE) == ["1", "2", "3"]


def test_its_links_are_valid():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("chapters/*.md")]
    labels = {
        label for path in pages for label in re.findall(r"^\(([\w-]+)\)=$", path.read_text(), re.MULTILINE)
    }
    asked = set(re.findall(r"\{ref\}`(?:[^`<]*<)?([\w-]+)>?`", PAGE))
    assert asked
    assert asked <= labels

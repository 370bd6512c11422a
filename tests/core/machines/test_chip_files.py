"""A chip of the reader's own is read from a file, or is one of the catalog with some figures replaced."""

import json
from datetime import date

import pytest

from scalingbook_lib.machines import Cluster, chip_files, chips
from scalingbook_lib.units import FP8, FP16

OWN = {
    "name": "mine", "flops_per_s": {"bfloat16": "165 TFLOPs", "fp8_e4m3": "330T"}, "hbm_bytes": "48GiB",
    "hbm_bytes_per_s": "1008 GB/s", "link_bytes_per_s": "31.5 GB/s", "domain_chips": 4, "joined": "PCIe",
    "source": "a datasheet",
}  # fmt: skip
ALONE = {"flops_per_s": {"fp16": 65e12}, "hbm_bytes": 2**34, "hbm_bytes_per_s": 3.2e11}


@pytest.fixture
def write(tmp_path):
    def written(content, name="mine.json"):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path / name

    return written


def test_a_file_gives_the_figures_of_a_chip_in_any_unit(write):
    chip = chip_files.read(write(OWN))
    assert (chip.bf16_flops_per_s, chip.flops_per_s(FP8)) == (165e12, 330e12)
    assert (chip.name, chip.hbm_bytes, chip.hbm_bytes_per_s) == ("mine", 48 * 2**30, 1.008e12)
    (level,) = Cluster.of(chip, 4).levels
    assert (level.name, level.bytes_per_s, level.reduces) == ("PCIe", 31.5e9, False)
    assert chip.sources["hbm_bytes"].text == "a datasheet"
    assert "assumed" in chip.sources["link_achieved_fraction"].text
    assert all(date.fromisoformat(chip.sources[figure].as_of) for figure in chip.figures())


def test_without_links_a_chip_works_alone(write):
    chip = chip_files.read(write(ALONE, "alone.json"))
    assert (chip.name, chip.flops_per_s(FP16), chip.rates()) == ("alone", 65e12, {"fp16": 65e12})
    assert Cluster.of(chip, 1).levels[0].size == 1
    with pytest.raises(ValueError, match="no source documents the network between them"):
        Cluster.of(chip, 2)


def test_a_file_may_say_which_chip_its_chip_is_like(write):
    chip = chip_files.read(write({"name": "H100 96GB", "like": "h100-sxm", "hbm_bytes": "96GiB"}))
    assert (chip.hbm_bytes, chip.bf16_flops_per_s) == (96 * 2**30, chips.H100.bf16_flops_per_s)
    assert chip.sources["bf16_flops_per_s"] == chips.H100.sources["bf16_flops_per_s"]


def test_figures_replace_those_of_a_chip_and_its_name_says_so():
    given = chip_files.assignments(["hbm_bytes=48GiB", "fp8 = 400T"])
    chip = chip_files.with_figures(chips.H100, given)
    assert chip.name == "H100 with hbm_bytes=48GiB, fp8=400T"
    assert (chip.hbm_bytes, chip.fp8_flops_per_s, chip.links) == (48 * 2**30, 400e12, 18)
    assert chip_files.with_figures(chips.H100, {}) is chips.H100


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"flops_per_s": 4e14}, 'write an object by type, as in {"bf16": "165T"}, or a field of one'),
        ({"hbm_bytes_per_s": None}, "hbm_bytes_per_s is 'None'; write a number, as in 900 GB/s"),
        ({"hbm_bytes": "24 TFLOPs"}, "hbm_bytes is '24 TFLOPs'; write it as in 24GiB"),
        ({"hbm_bytes": -1}, "hbm_bytes is -1; write it as in 24GiB"),
        ({"hbm_bytes": True}, "hbm_bytes is 'True'; write a number"),
        ({"links": 1.5}, "links is 1.5; write a whole number"),
        ({"joined": "wire"}, "joined is 'wire'; write one of switches, full mesh, PCIe"),
        ({"hbm_gb": 24}, "'hbm_gb' is not a number of a chip; write one of hbm_bytes"),
        ({"flops_per_s": {"fp64": 1}}, "'fp64' is not a data type here"),
    ],
)
def test_a_figure_that_cannot_be_read_is_told(write, change, told):
    with pytest.raises(ValueError, match=r".") as refused:
        chip_files.read(write(OWN | change))
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"name": "mine"}, "lacks hbm_bytes, hbm_bytes_per_s, flops_per_s; write them, as in"),
        ("[1]", "does not hold a JSON object; write the numbers of one chip"),
        ("{", "cannot be read as JSON; write the path of a chip's JSON file"),
    ],
)
def test_a_file_that_is_none_of_a_chip_is_told(write, content, told):
    with pytest.raises(chip_files.ChipFileError) as refused:
        chip_files.read(write(content))
    assert told in str(refused.value)


@pytest.mark.parametrize("written", ["hbm_bytes", "=3", "hbm_bytes="])
def test_a_figure_without_a_name_or_a_value_is_refused(written):
    with pytest.raises(chip_files.ChipFileError, match="write a name and value"):
        chip_files.assignments([written])
    with pytest.raises(chip_files.ChipFileError, match="is given twice"):
        chip_files.assignments(["links=1", "links=2"])


def test_a_record_of_measurements_is_no_file_of_figures(write):
    assert not chip_files.is_benchmark_record(write(OWN))
    assert chip_files.is_benchmark_record(write({"device": "cpu", "rows": []}))


def test_a_pointer_of_git_lfs_is_told(write):
    with pytest.raises(chip_files.ChipFileError, match=r"mine\.json is a Git LFS pointer"):
        chip_files.read(write("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 3\n"))

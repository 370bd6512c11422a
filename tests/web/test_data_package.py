"""The data package describes every published CSV file, and its types are those of the cells."""

import csv
import json
import re
import shutil

import pytest

from scalingbook_lib import __version__
from tools.environment import ROOT
from web import data_package


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    data_package.write(made)
    return made / data_package.FOLDER


@pytest.fixture(scope="module")
def descriptor(published):
    return json.loads((published / data_package.DESCRIPTOR).read_text(encoding="utf-8"))


def test_the_package_states_its_version_and_license_and_describes_every_file(published, descriptor):
    assert descriptor["version"] == __version__
    assert descriptor["licenses"][0]["name"] == "CC-BY-4.0"
    paths = [resource["path"] for resource in descriptor["resources"]]
    assert paths == sorted(path.name for path in published.glob("*.csv"))
    assert {"training_runs.csv", "inference_runs.csv", "kernels.csv", "model_configs.csv"} <= set(paths)
    assert len({resource["name"] for resource in descriptor["resources"]}) == len(paths)
    readme = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    assert [path for path in paths if path not in readme] == []


def test_the_readme_links_the_files_that_are_there_and_no_others(published):
    text = (published / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert "kernels.csv" in links
    assert [name for name in links if not (published / name).is_file()] == []


def test_a_resource_has_the_description_of_the_readme(descriptor):
    described = {one["path"]: one.get("description", one.get("title", "")) for one in descriptor["resources"]}
    assert described["kernels.csv"].startswith("measured matmuls and memory copies")
    assert [path for path, text in described.items() if not text] == []


def test_every_cell_has_the_type_of_its_column(published, descriptor):
    read = {"integer": int, "number": float, "boolean": ["True", "False"].index, "string": str}
    for resource in descriptor["resources"]:
        fields = resource["schema"]["fields"]
        with (published / resource["path"]).open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert [field["name"] for field in fields] == header
        for row in rows:
            for field, cell in zip(fields, row, strict=False):
                assert cell == "" or read[field["type"]](cell) is not None


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2"], "integer"),
        (["1", "2.5"], "number"),
        (["1e9", ""], "number"),
        (["True", "False"], "boolean"),
        (["1", "v5e"], "string"),
        ([], "string"),
        (["1_000"], "string"),
        (["nan"], "string"),
        ([" 1"], "string"),
    ],
)
def test_the_type_of_a_column_is_the_narrowest_that_fits(cells, kind):
    assert data_package.kind(cells) == kind


def test_files_of_equal_names_do_not_replace_each_other():
    names = [path.name for path in data_package.tables(ROOT)]
    assert len(names) == len(set(names))
    assert not {"chips.csv", "instances.csv", "models.csv"} & set(names)  # the site writes them


def test_a_missing_folder_has_no_tables(tmp_path):
    assert list(data_package.tables(tmp_path)) == []
    shutil.copytree(ROOT / "data" / "vectors", tmp_path / "data")
    assert list(data_package.tables(tmp_path)) == []

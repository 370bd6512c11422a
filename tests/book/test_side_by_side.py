"""The tables of chips and of models say what the library's catalog says."""

import csv

from scalingbook_lib import models
from scalingbook_lib.machines import chips, instances
from web.extension.side_by_side import CHIPS, INSTANCES, MODELS, table, write_csv


def test_every_chip_and_model_has_a_row_with_its_values():
    html = table("chips", "Chips", CHIPS, tuple(chips.ALL.values()), "")
    assert html.count("<tr>") == 1 + len(chips.ALL)
    assert html.index('class="widest"') < html.index("<tbody>")  # columns have their widths before their rows
    assert '<th scope="row">H100</th>' in html
    assert "989 TFLOPs/s" in html
    assert table("models", "Models", MODELS, models.CATALOG, "").count("<tr>") == 1 + len(models.CATALOG)


def test_the_csv_holds_base_units_and_a_source(tmp_path):
    path = tmp_path / "chips.csv"
    write_csv(path, CHIPS, tuple(chips.ALL.values()))
    rows = {row["name"]: row for row in csv.DictReader(path.open(encoding="utf-8"))}
    assert float(rows["H100"]["hbm_bytes_per_s"]) == chips.H100.hbm_bytes_per_s
    assert all(row["source"] for row in rows.values())


def test_every_instance_has_a_row_with_its_network_and_its_source(tmp_path):
    html = table("instances", "Instances", INSTANCES, instances.every(), "")
    assert html.count("<tr>") == 1 + len(instances.every())
    assert "3,200 Gb/s" in html
    write_csv(tmp_path / "instances.csv", INSTANCES, instances.every())
    rows = list(csv.DictReader((tmp_path / "instances.csv").open(encoding="utf-8")))
    assert all("https://" in row["source"] for row in rows)


def test_the_key_value_cache_of_a_token_is_the_known_one():
    cache = next(column for column in MODELS if column.field == "kv_bytes_per_token")
    assert cache.value(models.find("Llama 3 70B")) == 2 * 80 * 8 * 128 * 2


def test_a_width_stands_only_where_a_layer_has_it():
    dense, expert = (next(one for one in MODELS if one.field == field) for field in ("F", "expert_width"))
    widths = {
        name: (dense.value(models.find(name)), expert.value(models.find(name)))
        for name in ("Llama 3 70B", "DeepSeek-V3", "Mixtral 8x7B")
    }
    assert widths == {
        "Llama 3 70B": (28672, None),
        "DeepSeek-V3": (18432, 2048),
        "Mixtral 8x7B": (None, 14336),
    }

"""A table of anybody's is scored at the terminal, and what is no table is said."""

from pathlib import Path

from scalingbook_lib import evidence
from tools.environment import ROOT

ADDED = ROOT / "data" / "added_training_runs.csv"


def test_json_is_what_the_library_says(ask):
    told = ask("score --json", str(ADDED))
    assert told.code == 0
    values = dict(told.values)
    simpler = values.pop("baselines")
    assert values == evidence.score(ADDED).values
    assert [one["here"]["class"] for one in simpler] == ["training, dense", "training, experts"]
    for one in simpler:
        assert set(one) == {"here", "roofline", "constant"}
        assert one["here"]["n"] == one["roofline"]["n"] == one["constant"]["n"]
        assert one["here"]["mean"] < one["constant"]["mean"] < 1
        assert one["roofline"]["bias"] < -0.4  # a step at documented peaks is too short by half


def test_a_person_reads_it_by_class_chip_software_size_and_cause(ask):
    told = ask("score", str(ADDED)).out
    for part in ("By class", "By chip", "By software", "By size", "By cause", "Beside"):
        assert part in told


def test_what_is_no_table_is_said(ask, tmp_path: Path):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    told = ask("score", str(other))
    assert told.code == 2
    assert "training_runs has seq, chip, chips" in told.err
    assert ask("score", str(tmp_path / "none.csv")).code == 2


def test_a_table_of_which_nothing_is_understood_is_no_answer(ask, tmp_path: Path):
    strange = tmp_path / "strange.csv"
    strange.write_text("run_id,seq,chip,chips,model\nx,8192,Z9000,8,nobody's\n")
    told = ask("score", str(strange))
    assert told.code == 1
    assert "no chip 'Z9000' is known" in told.out.replace("\n", " ")

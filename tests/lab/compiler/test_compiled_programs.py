"""The page "Predicted and compiled" agrees with predictions, with the
records, and for a sample with the compiler.
"""

import pytest

from scalingbook_book.reader.explorers.view import Points
from scalingbook_lab.compiler import aot
from scalingbook_lib.machines import chips
from tools.compiled import facts, tables
from tools.compiled.beside import HELD, MEASURES, MOVED, REASONS, every, reasons
from tools.compiled.cases import cases
from tools.compiled_page import PAGE

SAMPLE = (
    "train: DP, tied embeddings, no gate",
    "train explicitly: EP over four chips",
    "prefill: Gemma 2B over 8",
    "decode: DeepSeek-V2-Lite over 8",
)


def test_the_page_its_figure_and_its_data_are_up_to_date():
    stale = [path.name for path, text in PAGE.files().items() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run make fidelity"


def test_the_figure_shows_the_bytes_of_every_program_at_their_values():
    (panel,) = PAGE.figure().view().panels
    drawn = [mark for mark in panel.marks if isinstance(mark, Points)]
    true = sorted(
        (one.compiled[measure], one.predicted[measure])
        for one in every()
        for measure in (MOVED, HELD)
        if measure in one.errors
    )
    assert sorted((x, y) for mark in drawn for x, y in zip(mark.xs, mark.ys, strict=True)) == true


def test_explicit_collectives_of_training_are_predicted():
    own = [one.errors[MOVED] for one in every() if one.kind == "training, explicit collectives"]
    assert len(own) == 14
    assert all(abs(error) < 0.05 for error in own)


def test_the_record_has_exactly_the_listed_programs():
    assert facts.recorded().keys() == cases().keys()
    assert len(every()) >= 60


def test_the_programs_cover_every_phase_chip_and_structure():
    assert {one.case.phase for one in every()} == {"train", "prefill", "decode"}
    assert {one.case.chip for one in every()} == {
        chips.V4, chips.V5E, chips.V5P, chips.V6E, chips.HALF_TPU7X,
    }  # fmt: skip
    assert {one.case.chips for one in every()} >= {1, 8, 64, 256, 1024, 4096}
    models = [one.case.asked[0] for one in every()]
    for has in ("experts", "latent", "tied", "positions"):
        assert {bool(getattr(m, has)) for m in models} == {True, False}, has
    assert {m.K == 1 for m in models} == {m.K == m.N for m in models} == {True, False}
    assert {m.windows == (None,) for m in models} == {m.norms < 2 for m in models} == {True, False}


def test_every_error_above_5_percent_is_explained():
    lacking = [(one.case.name, one.far) for one in every() if len(list(reasons(one))) < len(one.far)]
    assert lacking == []
    assert {r.name for one in every() for r in reasons(one)} == {r.name for r in REASONS}
    assert {r.measure for r in REASONS} <= set(MEASURES)


def test_every_byte_and_every_estimate_is_in_some_line_of_the_page():
    groups = [tables.grouped(key) for key in tables.GROUPS]
    assert sorted(one.case.name for group in groups for one in group.own) == sorted(cases())
    for group in groups:
        told = tables.lines(group.own).values()
        for measure in ("compiled", "predicted"):
            there = sum(getattr(one, measure)["bytes received"] for one in group.own)
            assert sum(getattr(line, measure) for line in told) == pytest.approx(there)
        assert len(group.ratios) == sum(one.facts.cycles > 0 for one in group.own)
    estimated = {one.case.name for one in every() if one.facts.cycles}
    assert estimated == {name for name, case in cases().items() if case.phase != "train"} | set(
        facts.TO_THE_END
    )


def test_the_ten_largest_errors_are_reported_with_their_rules():
    told = list(tables.worst())
    assert len(told) == tables.WORST
    assert {rule for *_, rule in told} <= {reason.name for reason in REASONS}


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("name", SAMPLE)
def test_the_compiler_writes_what_was_recorded(name):
    found, kept = facts.ask(cases()[name]), facts.recorded()[name]
    assert found.flops == kept.flops
    if aot.as_printed():
        assert found.moved == kept.moved
        assert found.held == kept.held

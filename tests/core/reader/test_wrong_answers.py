"""Answers that students give and that are wrong: none is accepted, and most are told their cause.

`wrong_answers.csv` has five wrong answers to each of 100 exercises, which were drawn by a fixed seed
(`random.Random(2026).sample`, of the sorted keys of all checks but those of programs). They were written from
the questions alone, before the diagnosis was changed. `cause` is the slip that leads to the answer:

- `one-for-total`, `total-for-one`: of one chip, layer, ... for all of them, and the reverse;
- `term-left-out`, `factor-left-out`, `axis-left-out`, `hops-left-out`, `fraction-left-out`: what is missing;
- `one-direction`, `both-directions`, `one-pass`, `two-passes`: of a link and of a collective;
- `factor-two-flops`, `wrong-dtype-size`, `bits-for-bytes`, `bytes-for-count`, `binary-for-decimal`,
  `wrong-prefix`, `wrong-unit`: how things are counted;
- `inverted-ratio`, `complement`, `sum-for-max`, `rounding`, `off-by-one`: how it is calculated;
- `wrong-chip`, `wrong-rate`, `wrong-count`, `wrong-quantity`, `wrong-stage`, `wrong-option`: another value;
- `wrong-formula-...`: another formula, in a word.
"""

import csv
from collections import Counter
from pathlib import Path

import pytest

from scalingbook_book.chapters import checks
from scalingbook_book.reader.checks import diagnosis

with Path(__file__).with_name("wrong_answers.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
ALSO = {  # a diagnosis names some causes by a more general slip
    "wrong-quantity": {"intermediate"},
    "root-left-in": {"power"},
    "root-left-out": {"power"},
    "squared": {"power"},
    "squared-left-out": {"power"},
    "partial-sum-left-out": {"partial-sum"},
    "partial-sum-as-split": {"partial-sum"},
}


def judged(row):
    return checks.find(row["exercise"])(row["answer"])


def test_there_are_five_wrong_answers_to_a_hundred_exercises():
    assert Counter(Counter(row["exercise"] for row in ROWS).values()) == {5: 100}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['exercise']} {row['answer']}")
def test_no_wrong_answer_is_accepted(row):
    assert judged(row).status in ("wrong", "unread")


def test_the_diagnosis_names_the_recorded_cause_of_most():
    named = [row for row in ROWS if {row["cause"], *ALSO.get(row["cause"], ())} & {*judged(row).slips}]
    assert len(named) >= 0.6 * len(ROWS)


def test_general_slips_name_causes_that_no_exercise_had_to_write_down():
    """Without the mistakes that exercises know themselves, a third of these is still named."""
    named = total = 0
    for row in ROWS:
        check = checks.find(row["exercise"])
        if check.kind == "number" and row["cause"] in diagnosis.SAYS:
            outcome = check.__class__(
                **{f: getattr(check, f) for f in check.__dataclass_fields__} | {"mistakes": ()}
            )(row["answer"])
            named, total = named + (row["cause"] in outcome.slips), total + 1
    assert named > total / 2, (named, total)

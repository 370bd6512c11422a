"""Every answer and every known slip is the one that was last looked at: `recorded.csv`, beside this file.

A line that is to change is written anew by `PYTHONPATH=. python` with this file.
"""

import csv
from pathlib import Path

from scalingbook_book.chapters import checks

RECORDED = Path(__file__).with_name("recorded.csv")


def told(value):
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)


def row(check):
    answer = check.answer()
    return [check.key, told(answer), *(told(slip.value(answer)) for slip in check.mistakes)]


def rows():
    return list(map(row, checks.catalog().values()))


def test_answers_and_slips_are_those_that_were_looked_at():
    with RECORDED.open(encoding="utf-8", newline="") as file:
        assert rows() == list(csv.reader(file))


if __name__ == "__main__":
    with RECORDED.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows())

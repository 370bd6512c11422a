"""Interprets a cell of a table: text, a number, a count, or a dtype.

An empty, absent or zero cell has no value; an invalid one makes the row `Refused`, with the reason.
"""

import re
from collections.abc import Mapping
from math import isfinite

type Cells = Mapping[str, str]  # a row by its columns; any may be absent

PRECISIONS = {
    "nvfp4": "nvfp4|mxfp4|fp4",
    "mxfp8": "mxfp8",
    "fp8": "fp8|float8|e4m3|e5m2",
    "int4": "int4|[wq]4|nf4|4.?bit|awq|gptq",
    "int8": "int8|[wq]8|8.?bit",
    "bf16": "bf16|bfloat16|16.?bit",
    "fp16": "fp16|float16|half",
}
"""Patterns of dtype names; the first match counts."""
MAX_COUNT = 2**40  # no real count of chips, tokens or layers is larger


class UnpredictedRow(ValueError):
    """A row that cannot be predicted; the message is the reason in one sentence."""


def text(row: Cells, *names: str) -> str:
    """The first of these cells that is not empty, or ""."""
    return next((cell for name in names if (cell := str(row.get(name) or "").strip())), "")


def annotated(row: Cells, own: str, *public: str) -> tuple[str, ...]:
    """The columns to read: the annotation column `own` if the table has it, else the public ones."""
    return (own,) if own in row else public


def number(row: Cells, *names: str) -> float | None:
    """A positive number, or None if no cell has one. Raises `Refused` for text and for negative numbers."""
    written = text(row, *names)
    try:
        value = float(written.replace(",", "").lstrip("~≈").removesuffix("%") or 0)
    except ValueError:
        raise UnpredictedRow(f"{names[0]} is {written[:40]!r}, which is not a number") from None
    if not value >= 0 or not isfinite(value):
        raise UnpredictedRow(f"{names[0]} is {written[:40]}, which is no count and no measurement")
    return value or None


def whole(row: Cells, *names: str) -> int | None:
    """A count, or None if no cell has one. Raises `Refused` for a fraction."""
    value = number(row, *names)
    if value is not None and (value != int(value) or value > MAX_COUNT):
        raise UnpredictedRow(f"{names[0]} is {value:g}, which is no count that could be")
    return None if value is None else int(value)


def needed(row: Cells, *names: str) -> int:
    """A required count; raises `Refused` if no cell has one."""
    value = whole(row, *names)
    if value is None:
        raise UnpredictedRow(f"the row does not say {' or '.join(names)}")
    return value


def first(words: Mapping[str, str], said: str) -> str | None:
    """The first name whose regular expression matches `said`, or None."""
    return next((name for name, pattern in words.items() if re.search(pattern, said.lower())), None)


def precision(written: str) -> str:
    """The dtype's name in the tables: 'bf16' for 'bfloat16' and for "", 'fp8' for 'fp8_block'.

    Raises `Refused` for an unknown dtype.
    """
    found = first(PRECISIONS, written or "bf16")
    if found is None:
        raise UnpredictedRow(f"no data type {written[:40]!r} is known here")
    return found

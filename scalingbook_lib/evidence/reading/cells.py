"""What does a cell of a table say? Text, a number, a count, a data type.

A cell that is empty, absent or 0 says nothing; one that says nonsense refuses its row, with a sentence.
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
"""Data types as the tables call them, by the words that stand for them; the first that is found holds."""
MOST = 2**40  # nobody's count of chips, tokens or layers; what is larger is a slip


class Refused(ValueError):
    """Why a row is not predicted, in one sentence."""


def text(row: Cells, *names: str) -> str:
    """The first of these cells that says something."""
    return next((cell for name in names if (cell := str(row.get(name) or "").strip())), "")


def annotated(row: Cells, own: str, *public: str) -> tuple[str, ...]:
    """Which columns count: the library's own, where its tables say how they are read, if by an empty cell."""
    return (own,) if own in row else public


def number(row: Cells, *names: str) -> float | None:
    """A positive number; None where no cell says one."""
    written = text(row, *names)
    try:
        value = float(written.replace(",", "").lstrip("~≈").removesuffix("%") or 0)
    except ValueError:
        raise Refused(f"{names[0]} is {written[:40]!r}, which is no number") from None
    if not value >= 0 or not isfinite(value):
        raise Refused(f"{names[0]} is {written[:40]}, which is no count and no measurement")
    return value or None


def whole(row: Cells, *names: str) -> int | None:
    """A count; None where no cell says one."""
    value = number(row, *names)
    if value is not None and (value != int(value) or value > MOST):
        raise Refused(f"{names[0]} is {value:g}, which is no count that could be")
    return None if value is None else int(value)


def needed(row: Cells, *names: str) -> int:
    """A count without which nothing can be predicted."""
    value = whole(row, *names)
    if value is None:
        raise Refused(f"the row does not say {' or '.join(names)}")
    return value


def first(words: Mapping[str, str], said: str) -> str | None:
    """The first name whose words, a regular expression, are found in what is said; None where none are."""
    return next((name for name, pattern in words.items() if re.search(pattern, said.lower())), None)


def precision(written: str) -> str:
    """A data type as the tables call it: 'bf16' for 'bfloat16' and for nothing, 'fp8' for 'fp8_block'."""
    found = first(PRECISIONS, written or "bf16")
    if found is None:
        raise Refused(f"no data type {written[:40]!r} is known here")
    return found

"""What does a cell of somebody's table say? Numbers, chips and data types, however they are spelled.

A cell that is empty, absent or 0 says nothing; one that says nonsense refuses its row, with a sentence.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import isfinite

from scalingbook_lib.evidence import resources
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import GiB

type Cells = Mapping[str, str]  # a row by its columns; any may be absent

ALSO = {
    "v5lite": "TPU v5e",
    "v5litepod": "TPU v5e",
    "trillium": "TPU v6e",
    "ironwood": "TPU7x",
    "v7x": "TPU7x",
    "trn1": "Trainium1",
    "trn2": "Trainium2",
    "inf2": "Trainium1",
    "rtxpro6000": "RTX PRO 6000 SE",
}
"""What clouds call the same chip."""
PRECISIONS = (
    ("nvfp4", "nvfp4|mxfp4|fp4"),
    ("mxfp8", "mxfp8"),
    ("fp8", "fp8|float8|e4m3"),
    ("int4", "int4|w4|awq|gptq"),
    ("int8", "int8|w8"),
    ("fp16", "fp16|float16|half"),
    ("bf16", "bf16|bfloat16|16.?bit"),
)
"""Data types as the tables call them, by the words that stand for them; the first that is found holds."""
MOST = 2**40  # nobody's count of chips, tokens or layers; what is larger is a slip


class Refused(ValueError):
    """Why a row is not predicted, in one sentence."""


def text(row: Cells, *names: str) -> str:
    """The first of these cells that says something."""
    return next((cell for name in names if (cell := str(row.get(name) or "").strip())), "")


def number(row: Cells, *names: str) -> float | None:
    """A positive number; None where no cell says one."""
    written = text(row, *names)
    try:
        value = float(written.replace(",", "") or 0)
    except ValueError:
        raise Refused(f"{names[0]} is {written[:40]!r}, which is no number") from None
    if not value >= 0 or not isfinite(value):
        raise Refused(f"{names[0]} is {written[:40]}, which is no count and no measurement")
    return value or None


def whole(row: Cells, *names: str) -> int | None:
    """A count; None where no cell says one."""
    value = number(row, *names)
    if value is None:
        return None
    if value != int(value) or value > MOST:
        raise Refused(f"{names[0]} is {value:g}, which is no count that could be")
    return int(value)


def needed(row: Cells, *names: str) -> int:
    """A count without which nothing can be predicted."""
    value = whole(row, *names)
    if value is None:
        raise Refused(f"the row does not say {' or '.join(names)}")
    return value


def precision(written: str, default: str = "bf16") -> str:
    """A data type as the tables call it: 'bf16' for 'bfloat16', 'fp8' for 'fp8_block'."""
    lower = written.lower().replace("bfloat16", "bf16")
    for name, words in PRECISIONS:
        if re.search(words, lower):
            return name
    if lower:
        raise Refused(f"no data type {written[:40]!r} is known here")
    return default


@cache
def chip(name: str) -> Chip:
    """The chip of that name, whatever stands around it: 'NVIDIA H100 80GB HBM3', 'A100-SXM4-40GB', 'v5p-128'.

    A memory or a power that is written and is not the chip's own makes a variant of it, which is its kin.
    """
    if "half" in name.lower() and "7x" in name.lower():
        return chips.HALF_TPU7X
    found = next(_found(name), None)
    if found is None:
        raise Refused(f"no chip {name[:40]!r} is known; there are {', '.join(sorted(_known_names()))}")
    return _variant(found, name.lower())


def _known_names() -> set[str]:
    return {one.name for one in _known().values()}


@cache
def _known() -> dict[str, Chip]:
    """Every chip by its name in small letters and digits alone, the longest names first."""
    every = (*chips.CATALOGUE.values(), chips.RTX_PRO_6000, *resources.VARIANTS.values(), *resources.others())
    named = {_bare(one.name): one for one in every} | {_bare(k): one for k, one in resources.VARIANTS.items()}
    named |= {key.removeprefix("tpu"): one for key, one in named.items()}
    named |= {alias: named[_bare(name)] for alias, name in ALSO.items()}
    return {key: named[key] for key in sorted(named, key=len, reverse=True)}


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _found(name: str) -> Iterator[Chip]:
    """A known name that begins at a word and ends at one, or before a letter: 'H100SXM5' but not 'H1000'."""
    words = [re.sub(r"^\d+x(?=[a-z])|^tpu(?=v?\d)", "", w) for w in re.findall(r"[a-z0-9]+", name.lower())]
    for start in range(len(words)):
        joined, ends = "", set()
        for word in words[start:]:
            joined += word
            ends.add(len(joined))
        for key, found in _known().items():
            rest = joined[len(key) :]
            if joined.startswith(key) and (len(key) in ends or rest[:1].isalpha()):
                yield found


def _variant(found: Chip, name: str) -> Chip:
    memory, power = re.search(r"\b(\d{2,3}) ?gi?b?\b", name), re.search(r"\b(\d{2,4}) ?w\b", name)
    if memory and abs(int(memory[1]) * GiB / found.hbm_bytes - 1) > 0.1:
        smaller = f"{found.name} {memory[1]}GB"
        same = (one for one in resources.VARIANTS.values() if one.name == smaller)
        found = next(same, replace(found, name=smaller, hbm_bytes=int(memory[1]) * GiB))
    if power and found.power_w and abs(int(power[1]) / found.power_w - 1) > 0.02:
        found = replace(found, name=f"{found.name}, {power[1]} W", power_w=float(power[1]))
    return found

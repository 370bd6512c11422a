"""Finds the chip that a name means: 'NVIDIA H100 80GB HBM3', 'A100-SXM4-40GB', 'v5p'."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from scalingbook_lib.evidence.reading.cells import UnpredictedRow
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import GB, GiB

VARIANTS = {
    "A100-40G": chips.A100_40GB,
    "A100-80G (330W)": replace(
        chips.A100, name="A100, 330 W", power_w=330
    ),  # in gpt-fast's runs; the standard is 400 W
    "H100-96G-HBM2e-500W": replace(  # in torchtitan's runs
        chips.H100, name="H100 96GB, 500 W", hbm_bytes=96 * GiB, hbm_bytes_per_s=2400 * GB, power_w=500
    ),
    "half a TPU7x": chips.HALF_TPU7X,  # what JAX calls a device
}
"""Variants that only tables name."""
ALIASES = {
    "v5lite": "TPU v5e",
    "v5litepod": "TPU v5e",
    "v6lite": "TPU v6e",
    "trillium": "TPU v6e",
    "ironwood": "TPU7x",
    "v7x": "TPU7x",
    "trn1": "Trainium1",
    "trn2": "Trainium2",
    "inf2": "Trainium1",
    "rtxpro6000": "RTX PRO 6000 SE",
    "mi250x": "MI250X GCD",
}
"""Names that clouds and drivers use for a chip."""


@cache
def chip(name: str) -> Chip:
    """The chip with that name; raises `Refused` if no part of the name is a known chip.

    A memory size or power in the name that differs from the chip's gives a variant of it.
    """
    if re.search("half.*7x|7x.*half", name.lower()):
        return chips.HALF_TPU7X
    found = next(_matches(name), None)
    if found is None:
        known = ", ".join(sorted({one.name for one in _known().values()}))
        raise UnpredictedRow(f"no chip {name[:40]!r} is known; there are {known}")
    return _variant(found, name.lower())


@cache
def _known() -> dict[str, Chip]:
    """Every chip by its name in lower-case letters and digits, the longest names first."""
    measured = (*chips.CATALOG.values(), *chips.OTHERS, chips.GAUDI3, chips.TRAINIUM2)
    every = {one.name: one for one in measured} | VARIANTS
    every |= {alias: every[name] for alias, name in ALIASES.items()}
    named = {re.sub(r"[^a-z0-9]|^tpu", "", name.lower()): one for name, one in every.items()}
    return {key: named[key] for key in sorted(named, key=len, reverse=True)}


def _matches(name: str) -> Iterator[Chip]:
    """Chips whose name starts at a word and ends at a word or before a letter: 'H100SXM5' but not 'H1000'."""
    words = [re.sub(r"^\d+x(?=[a-z])|^tpu(?=v?\d)", "", w) for w in re.findall(r"[a-z0-9]+", name.lower())]
    for start in range(len(words)):
        joined = "".join(words[start:])
        ends = {len("".join(words[start:end])) for end in range(start, len(words) + 1)}
        for key, found in _known().items():
            if joined.startswith(key) and (len(key) in ends or joined[len(key)].isalpha()):
                yield found


def _variant(found: Chip, name: str) -> Chip:
    memory, power = re.search(r"\b(\d{2,3}) ?gi?b?\b", name), re.search(r"\b(\d{2,4}) ?w\b", name)
    if memory and abs(int(memory[1]) * GiB / found.hbm_bytes - 1) > 0.1:
        smaller = replace(found, name=f"{found.name} {memory[1]}GB", hbm_bytes=int(memory[1]) * GiB)
        found = next((one for one in VARIANTS.values() if one.name == smaller.name), smaller)
    if power and found.power_w and abs(int(power[1]) / found.power_w - 1) > 0.02:
        found = replace(found, name=f"{found.name}, {power[1]} W", power_w=float(power[1]))
    return found

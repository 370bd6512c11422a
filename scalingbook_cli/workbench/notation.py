"""Converts common spellings of machines and batches to those of the command line: `8xH100` is `h100:8`."""

import re
from dataclasses import dataclass
from math import log2, prod

from scalingbook_cli import reading
from scalingbook_lib.machines import Chip
from scalingbook_lib.machines.torus import write_shape

NEAR = 0.05  # batches are powers of two in practice: one that is so near is what was meant, as 4Mi for 4M
_COUNT_FIRST = re.compile(r"(?P<n>[0-9]{1,7})\s*[x×*]?\s*(?P<chip>[A-Za-z][\w .-]*)")
_CHIP_FIRST = re.compile(r"(?P<chip>[A-Za-z][\w .-]*?)\s*[x×*]\s*(?P<n>[0-9]{1,7})")


@dataclass(frozen=True, slots=True)
class Note:
    """How the value of a field was interpreted, if it was not used as typed."""

    field: str
    says: str


def machine(text: str) -> str:
    """'8xH100', '8 H100' and 'H100 x 8' as 'h100:8', '512xv5p' as 'v5p:8x8x8'; anything else unchanged."""
    match = _COUNT_FIRST.fullmatch(text) or _CHIP_FIRST.fullmatch(text)
    if match is None or _known(text):
        return text
    chip, n = _known(match["chip"]), int(match["n"])
    if chip is None or not n:
        return text
    name = match["chip"].strip().lower()
    return f"{name}:{shape(chip, n) or n}" if chip.torus else f"{name}:{n}"


def _known(name: str) -> Chip | None:
    try:
        return reading.chip(name)
    except ValueError:
        return None


def shape(chip: Chip, n: int) -> str:
    """The most compact slice with that many chips, such as '8x8x8', or "" if there is none."""
    found = [sides for sides in chip.topology().shapes() if prod(sides) == n]
    return write_shape(min(found, key=max)) if found else ""


def batch(text: str, sequence: str) -> tuple[str, str]:
    """A batch in tokens as a whole number of sequences, and a sentence if it had to be rounded."""
    try:
        T = reading.whole(sequence)
        tokens = reading.whole(text, words=("tokens",))
    except ValueError:
        return text, ""  # the command says why
    if re.fullmatch(r"[0-9][0-9_,]*", text.strip()) or tokens % T == 0:  # a plain number counts sequences
        return text, ""
    power = 2 ** max(round(log2(tokens / T)), 0)
    n = power if abs(power * T / tokens - 1) < NEAR else max(round(tokens / T), 1)
    count = f"{n:,} sequence{'s' * (n > 1)} ({n * T:,} tokens)"
    return f"{n}", f"{tokens:,} tokens is not a whole number of {T:,}-token sequences. Read as {count}."


def corrected(values: dict[str, str]) -> tuple[dict[str, str], tuple[Note, ...]]:
    """The values as commands parse them, and a note for each field that was converted."""
    notes = []
    for field in ("machine", "server"):
        if (read := machine(values[field])) != values[field]:
            values, said = values | {field: read}, f"Read as {read}."
            notes.append(Note(field, said))
    read, said = batch(values["batch"], values["sequence"])
    if said:
        values = values | {"batch": read}
        notes.append(Note("batch", said))
    return values, tuple(notes)

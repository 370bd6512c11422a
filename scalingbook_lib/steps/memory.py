"""The bytes that one chip holds, by part, and whether they fit in its HBM. Chapters: Training; Inference."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from scalingbook_lib.machines import Chip
from scalingbook_lib.units import Result, binary, percent, si


@dataclass(frozen=True, kw_only=True, slots=True)
class ChipMemory(Result):
    """The bytes on one chip by part; a subclass has a field for each part and lists them in `parts`.

    `chip` is None if only the total matters.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    chip: Chip | None

    def __getitem__(self, part: str) -> float:
        """The bytes of one part, by the name under which it is printed: `memory["gathered weights"]`.

        Raises a KeyError that lists all parts if there is none of that name.
        """
        if (name := part.replace(" ", "_")) not in self.parts:
            known = ", ".join(name.replace("_", " ") for name in self.parts)
            raise KeyError(f"no part {part!r}; there are {known}")
        return getattr(self, name)

    @property
    def terms(self) -> dict[str, float]:
        """The bytes of every part that is not empty, by name."""
        return {name.replace("_", " "): n for name in self.parts if (n := getattr(self, name))}

    @property
    def total(self) -> float:
        """The total bytes of all parts."""
        return sum(getattr(self, name) for name in self.parts)

    @property
    def room_bytes(self) -> float:
        """The capacity of the chip's HBM in bytes; inf without a chip."""
        return self.chip.hbm_bytes if self.chip else inf

    @property
    def fits(self) -> bool:
        """Whether the parts fit in the chip's HBM."""
        return self.total <= self.room_bytes

    @property
    def note(self) -> str:
        """The text that is printed after the parts."""
        return ""

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {si(n, 'B')}" for name, n in self.terms.items()) + self.note
        if self.chip is None:
            return f"{si(self.total, 'B')} per chip: {parts}"
        share = percent(self.total / self.chip.hbm_bytes, 2 if self.fits else 3)  # 104% is not 100%
        verb = "fits" if self.fits else "does not fit"
        room = f"{binary(self.chip.hbm_bytes)} of {self.chip.name}"
        return f"{si(self.total, 'B')} {verb} in {room} ({share}): {parts}"

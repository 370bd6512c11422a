"""The view of an explorer: a verdict, panels and readouts, as values independent of any drawing.

A pure function of the controls returns a `View`. `reader.draw` draws it as SVG for pages, notebooks and
files. All parts of a view can be imported from this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_book.reader.explorers import scales
from scalingbook_book.reader.explorers.marks import Band, Curve, Mark, Points, RefLine, Regions, Scale
from scalingbook_book.reader.explorers.panels import (
    Bars,
    Cell,
    Chart,
    Grid,
    Link,
    Network,
    Node,
    Panel,
    Series,
    Span,
    Timeline,
    colored,
)
from scalingbook_lib.units import binary, count_in_words, percent

__all__ = [
    "Band",
    "Bars",
    "Cell",
    "Chart",
    "Curve",
    "Grid",
    "Link",
    "Mark",
    "Network",
    "Node",
    "Panel",
    "Points",
    "Readout",
    "RefLine",
    "Regions",
    "Scale",
    "Series",
    "Span",
    "Timeline",
    "View",
    "colored",
]


@dataclass(frozen=True, slots=True)
class Readout:
    """A number with its label and unit, or with a `text` of its own."""

    label: str
    value: float
    unit: str = ""
    text: str = ""

    @classmethod
    def percent(cls, label: str, share: float, digits: int = 2) -> "Readout":
        """Return the readout of a fraction, in percent."""
        return cls(label, share, "", percent(share, digits))

    @classmethod
    def binary(cls, label: str, nbytes: float) -> "Readout":
        """Return the readout of a memory size, with a binary prefix."""
        return cls(label, nbytes, "B", binary(nbytes))

    def __str__(self) -> str:
        if self.text or scales.prefixed(self.unit) or not self.unit.isalpha() or not abs(self.value) >= 1e6:
            return self.text or scales.written(self.value, self.unit)
        return f"{count_in_words(self.value)} {self.unit}"


@dataclass(frozen=True, slots=True)
class View:
    """One sentence, panels and readouts; `frames` is the number of frames if a Steps control moves through
    it.

    `columns=2` places panels side by side if there is room, each drawn as on a narrow screen. A last panel
    without a neighbor is as wide as both columns.
    """

    verdict: str
    panels: Sequence[Panel]
    readouts: Sequence[Readout] = ()
    frames: int = 1
    columns: int = 1

    def __post_init__(self) -> None:
        if not self.verdict:
            raise ValueError("a view needs a verdict: one sentence that says what is seen")
        if self.frames < 1 or self.columns not in (1, 2):
            raise ValueError(
                f"a view has at least one frame, and one or two columns, not {self.frames} and {self.columns}"
            )

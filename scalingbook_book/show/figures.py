"""Show one of the book's figures: as HTML, or as its caption where no HTML can be shown."""

from dataclasses import dataclass
from typing import Any

from scalingbook_book.chapters import figures
from scalingbook_book.reader.figures.figure import Figure


def show(key: str) -> "ShownFigure":
    """Return the figure with this key, such as `rooflines.wait`."""
    return ShownFigure(figures.find(key))


@dataclass(frozen=True)
class ShownFigure:
    """A figure on display."""

    figure: Figure

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": str(self.figure), "text/html": self.figure.html()}

"""A figure of a page: its picture, wide or narrow, and its caption.

A figure is a pure function of the library, so the same library gives the same bytes. Its numbers are computed
by the library, never typed in.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw.svg import escape
from scalingbook_book.reader.explorers.view import Panel
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.units import Result

_AXES = re.compile(r"(?<=[A-Z])_([A-Z]+)(?=[,\]])")  # the mesh axes in A[I_X, J_Y]


@dataclass(frozen=True, kw_only=True)
class Figure(Result):
    """A drawing with its description (`alt`, for readers who do not see it) and its conclusion (`caption`).

    `parts(wide)` returns the sketches and panels from top to bottom, for a drawing 680 or 340 units wide.
    """

    key: str
    alt: str
    caption: str
    parts: Callable[[float], Sequence[Sketch | Panel]]

    def __str__(self) -> str:
        return f"{self.caption} [{self.alt}]"

    def picture(self, *, wide: bool) -> str:
        """Return the drawing as SVG."""
        width = draw.WIDE if wide else draw.NARROW
        return "".join(
            part.svg("") if isinstance(part, Sketch) else draw.panel(part, width)
            for part in self.parts(width)
        )

    def html(self) -> str:
        """Return the figure as a page shows it; without the page's stylesheet only the wide drawing is
        visible.
        """
        label_attributes = f'role="img" aria-label="{escape(self.alt)}"'
        anchor = f' id="fig-{self.key.replace(".", "-")}"' if self.key else ""
        return (
            f'<figure class="fig"{anchor}>\n'
            f'<div class="fig-wide" {label_attributes}>{self.picture(wide=True)}</div>\n'
            f'<div class="fig-narrow" {label_attributes} hidden>{self.picture(wide=False)}</div>\n'
            f"<figcaption>{_AXES.sub(r'<sub>\1</sub>', escape(self.caption))}</figcaption>\n</figure>"
        )

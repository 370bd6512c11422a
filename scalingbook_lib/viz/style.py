"""How does a matplotlib figure of this book look? With the page's colours, a light grid, no box."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from cycler import cycler

from scalingbook_lib.reader.draw.palette import LIGHT

TYPE = 9.5  # points

_RC: dict[Any, Any] = {
    "font.size": TYPE,
    "axes.prop_cycle": cycler(color=LIGHT),
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": "#999999",
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": TYPE,
    "grid.color": "#e4e4e4",
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "ytick.major.size": 0,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
}


def color(index: int) -> str:
    """The colour of that index; indices wrap around."""
    return LIGHT[index % len(LIGHT)]


@contextmanager
def book() -> Iterator[None]:
    """Within it, matplotlib draws in the book's style."""
    with mpl.rc_context(_RC):
        yield

"""Show an explorer in a notebook, with ipywidgets as its controls and the page's picture.

The result of `show` also carries the page's static HTML and one sentence, which a stored notebook keeps. (The
tool that executes the notebooks drops the widget, because its id differs every time.)
"""

import sys
from dataclasses import dataclass
from typing import Any

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.explorer import Explorer

WIDGET = "application/vnd.jupyter.widget-view+json"


def show(explorer: str | Explorer, **start: Any) -> "ShownExplorer":
    """Return the explorer with this key, with other initial values if they are given."""
    found = explorers.find(explorer) if isinstance(explorer, str) else explorer
    return ShownExplorer(found.starting(**start) if start else found)


@dataclass(frozen=True)
class ShownExplorer:
    """An explorer on display: live in a kernel, a picture everywhere else."""

    explorer: Explorer

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        text, html = {"text/plain": self.explorer.text()}, {"text/html": self.explorer.html()}
        if not _live():
            return text | html
        from scalingbook_book.show import widgets

        model = widgets.Live(self.explorer).box().model_id
        view = {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": model}}
        # given both, Colab may show the HTML, so it gets the widget alone
        return text | view if "google.colab" in sys.modules else text | html | view


def _live() -> bool:
    """Return whether a kernel with ipywidgets is available to run the controls."""
    if "IPython" not in sys.modules:
        return False
    from importlib.util import find_spec

    from IPython.core.getipython import get_ipython

    return hasattr(get_ipython(), "kernel") and find_spec("ipywidgets") is not None

"""What does a stored notebook show of an explorer or a figure, without a kernel to run it?

Both are pure functions of the library: what `explore.show("...")` and `figure.show("...")` leave in a
notebook can be written anew where an option or a colour has changed, and nothing else has to run.
"""

import re

from nbformat import NotebookNode

from scalingbook_lib.viz import explore, figure

SHOWN = re.compile(r'(explore|figure)\.show\("([\w.]+)"\)')
_SHOWS = {"explore": explore.show, "figure": figure.show}


def repainted(source: str, outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs of a cell, with the newest picture in the only one where its last line shows it."""
    found = SHOWN.fullmatch(source.rstrip().rpartition("\n")[2])
    if found and len(outputs) == 1:
        data = _SHOWS[found[1]](found[2])._repr_mimebundle_()
        outputs[0].data.update({kind: data[kind] for kind in ("text/html", "text/plain")})
    return outputs

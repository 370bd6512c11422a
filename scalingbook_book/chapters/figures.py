"""Find a figure of the book by its key; every chapter's `figures` has one function per figure.

>>> find("rooflines.wait").key
'rooflines.wait'
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from scalingbook_book.chapters import stems
from scalingbook_book.reader.figures.figure import Figure


@cache
def find(key: str) -> Figure:
    """The figure of that key, such as `rooflines.wait`; a LookupError that names the known ones."""
    drawn = chapter(key.partition(".")[0])
    if key not in drawn:
        raise LookupError(f"there is no figure {key[:40]!r}; there are {', '.join(drawn or catalog())}")
    return drawn[key]


@cache
def chapter(stem: str) -> dict[str, Figure]:
    """The figures of one chapter by key, in its order; none where the chapter has none."""
    if stem not in stems() or find_spec(f"scalingbook_book.chapters.{stem}.figures") is None:
        return {}
    draws = import_module(f"scalingbook_book.chapters.{stem}.figures").FIGURES
    return {figure.key: figure for figure in (make() for make in draws)}


def catalog() -> dict[str, Figure]:
    """Every figure by its key."""
    return {key: figure for stem in stems() for key, figure in chapter(stem).items()}

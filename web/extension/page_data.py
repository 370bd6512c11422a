"""Data that parts of the extension record for each page while Sphinx reads it, by name and page.

Sphinx keeps it between builds, drops it for a page that is read again, and merges it from its processes.
"""

from functools import cache
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from tools import wheel


def page_data(env: BuildEnvironment, name: str) -> dict[str, Any]:
    """Return the recorded data of this name, by page."""
    return _all(env).setdefault(name, {})


def shows_the_library(env: BuildEnvironment) -> None:
    """Rebuild the current page if the library changes, because it contains the library's output."""
    for path in _library():
        env.note_dependency(path)


@cache
def _library() -> tuple[str, ...]:
    """Return the paths of the library's files."""
    return tuple(
        str(p)
        for folder in wheel.CORE
        for p in (wheel.ROOT / folder).rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    )


def _all(env: BuildEnvironment) -> dict[str, dict[str, Any]]:
    if not hasattr(env, "book_noted"):
        env.book_noted = {}  # type: ignore[attr-defined]
    return env.book_noted  # type: ignore[attr-defined]


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Drop the data of a page that is read again or was removed."""
    for pages in _all(env).values():
        pages.pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: list[str], other: BuildEnvironment) -> None:
    """Take the data that another process has recorded for its pages."""
    for name, found in _all(other).items():
        page_data(env, name).update({page: found[page] for page in pages if page in found})


def setup(app: Sphinx) -> None:
    """Connect to Sphinx's purge and merge events."""
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)

"""What is noted of a page while Sphinx reads it: a dictionary of pages for each name.

Sphinx keeps it between builds, forgets a page that it reads again, and merges what its processes have read.
"""

from functools import cache
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from tools import wheel


def noted(env: BuildEnvironment, name: str) -> dict[str, Any]:
    """What is noted under this name, by page."""
    return _all(env).setdefault(name, {})


def shows_the_library(env: BuildEnvironment) -> None:
    """Read the page again when the library has changed, which has drawn a part of it."""
    for path in _library():
        env.note_dependency(path)


@cache
def _library() -> tuple[str, ...]:
    """Its files."""
    return tuple(str(p) for p in wheel.LIBRARY.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def _all(env: BuildEnvironment) -> dict[str, dict[str, Any]]:
    if not hasattr(env, "book_noted"):
        env.book_noted = {}  # type: ignore[attr-defined]
    return env.book_noted  # type: ignore[attr-defined]


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Drop what was noted of a page that is read again or is gone."""
    for pages in _all(env).values():
        pages.pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: list[str], other: BuildEnvironment) -> None:
    """Take what another process has noted of the pages that it read."""
    for name, found in _all(other).items():
        noted(env, name).update({page: found[page] for page in pages if page in found})


def setup(app: Sphinx) -> None:
    """Follow what Sphinx reads."""
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)

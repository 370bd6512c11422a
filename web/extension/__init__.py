"""The site's Sphinx extension: formulas, exercises, glossary cards, the cover, search, and lean pages."""

from typing import Any

from sphinx.application import Sphinx

from web import vendor
from web.extension import (
    answers,
    api,
    assets,
    breakable_names,
    cards,
    citations,
    contents,
    course,
    cover,
    embed,
    exercises,
    head,
    inspector,
    licenses,
    math_punctuation,
    maths,
    no_break_spaces,
    numbers,
    order,
    outputs,
    page,
    page_data,
    search,
    side_by_side,
    site_files,
    solutions,
    source,
    term_links,
    terms,
    workbench,
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up every part and declare that pages can be read and written in parallel."""
    vendor.install()  # `jb build .` in a fresh clone has not installed the pinned packages
    parts = (
        page_data, source, page, contents, order, head, licenses, site_files, maths, exercises, solutions,
        answers, api, terms, term_links, numbers, cards, citations, cover, course, side_by_side, embed,
        search, workbench, inspector, outputs, no_break_spaces,
        math_punctuation, breakable_names, assets,
    )  # fmt: skip
    for part in parts:
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""The site's own Sphinx extension: formulas, exercises, term cards, the cover, pages without weight."""

from typing import Any

from sphinx.application import Sphinx

from web.extension import (
    answers,
    assets,
    cards,
    citations,
    contents,
    course,
    cover,
    embed,
    exercises,
    head,
    licenses,
    maths,
    noted,
    numbers,
    order,
    outputs,
    outside,
    page,
    search,
    side_by_side,
    solutions,
    source,
    spaces,
    terms,
    uses,
    workbench,
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up every part."""
    parts = (
        noted, source, page, contents, order, head, licenses, outside, maths, exercises, solutions, answers,
        terms, uses, numbers, cards, citations, cover, course, side_by_side, embed, search, workbench,
        outputs, spaces, assets,
    )  # fmt: skip
    for part in parts:
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""The site's own Sphinx extension: formulas, exercises, term cards, the cover, pages without weight."""

from typing import Any

from sphinx.application import Sphinx

from web.extension import (
    assets,
    cards,
    course,
    cover,
    exercises,
    head,
    licenses,
    maths,
    order,
    outside,
    page,
    source,
    terms,
    uses,
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up every part."""
    parts = (
        source, page, order, head, licenses, outside, maths, exercises, terms, uses, cards, cover, course,
        assets,
    )  # fmt: skip
    for part in parts:
        part.setup(app)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}

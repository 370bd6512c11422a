"""The site's own Sphinx extension: formulas, exercises, term cards, the cover, pages without weight."""

from typing import Any

from sphinx.application import Sphinx

from web.extension import assets, cards, cover, exercises, maths, page, source


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up every part."""
    for part in (source, page, maths, exercises, cards, cover, assets):
        part.setup(app)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}

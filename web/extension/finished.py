"""Change the HTML of a finished page."""

from collections.abc import Callable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def connect(app: Sphinx, change: Callable[[str], str], priority: int) -> None:
    """Replace the body of every page by `change` of it; a higher priority runs later."""

    def write(
        app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
    ) -> None:
        context["body"] = change(context.get("body") or "")

    app.connect("html-page-context", write, priority=priority)

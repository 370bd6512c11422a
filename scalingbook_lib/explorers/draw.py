"""How is a view drawn? As SVG and HTML text, by the standard library alone."""

from html import escape

from scalingbook_lib.explorers.view import View


def figure(view: View, *, wide: bool) -> str:
    """All panels of a view as SVG."""
    return ""


def readouts(view: View) -> str:
    """The readouts as the inside of a description list."""
    return "".join(f"<div><dt>{escape(r.label)}</dt><dd>{escape(str(r))}</dd></div>" for r in view.readouts)

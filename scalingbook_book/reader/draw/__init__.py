"""Draw a view as SVG and HTML text, using only the standard library.

The static first view of a page and every live view come from the same functions, so they look the same.
"""

from scalingbook_book.reader.draw import bars, chart, grid, network, svg
from scalingbook_book.reader.explorers.view import Bars, Chart, Grid, Network, Panel, Timeline, View

WIDE, NARROW = 680.0, 340.0


def figure(view: View, *, wide: bool) -> str:
    """Return all panels of a view: 680 units wide, or 340 for a phone and for panels placed side by side."""
    if not wide:
        return "".join(panel(p, NARROW) for p in view.panels)
    if view.columns == 1:
        return "".join(panel(p, WIDE) for p in view.panels)
    paired = len(view.panels) // 2 * 2
    pairs = "".join(panel(p, NARROW) for p in view.panels[:paired])
    return f'<div class="ex-columns">{pairs}</div>' + "".join(panel(p, WIDE) for p in view.panels[paired:])


def panel(panel: Panel, width: float) -> str:
    """Return one panel as SVG, `width` units wide."""
    match panel:
        case Chart():
            return chart.chart(panel, width)
        case Bars():
            return bars.bars(panel, width)
        case Grid():
            return grid.grid(panel, width)
        case Timeline():
            return bars.timeline(panel, width)
        case Network():
            return network.network(panel, width)


def readouts(view: View) -> str:
    """Return the readouts as the content of a description list."""
    pairs = [(svg.escape(r.label), svg.escape(str(r))) for r in view.readouts]
    return "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in pairs)

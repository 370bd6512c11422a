"""How is a view drawn with matplotlib? Panel by panel, with the page's colours, scales and ticks."""

from matplotlib.figure import Figure

from scalingbook_lib.reader.explorers.view import Bars, Chart, Grid, Network, Panel, Timeline, View
from scalingbook_lib.viz import charts, style

_PANELS = {
    Chart: charts.chart,
    Bars: charts.bars,
    Timeline: charts.timeline,
    Grid: charts.grid,
    Network: charts.network,
}


WIDTH = 7.2  # inches


def draw(view: View, fig: Figure | None = None) -> Figure:
    """All panels of a view on a figure, one below the other or in its columns; nothing is shown."""
    with style.book():
        panels = [view.panels[i : i + view.columns] for i in range(0, len(view.panels), view.columns)]
        heights = [max(map(_height, row)) for row in panels]
        fig = fig or Figure(figsize=(WIDTH, sum(heights)))
        fig.clear()
        axes = fig.subplots(len(panels), view.columns, squeeze=False, height_ratios=heights)
        for ax in axes.flat:
            ax.set_axis_off()
        for ax, panel in zip(axes.flat, view.panels, strict=False):
            ax.set_axis_on()
            _PANELS[type(panel)](panel, ax)
            ax.set_title(panel.title)
    return fig


def _height(panel: Panel) -> float:
    """How high a panel is, in inches."""
    match panel:
        case Bars():
            return 0.9 + 0.3 * len(panel.labels) * (1 if panel.stacked else len(panel.series))
        case Timeline():
            return 0.9 + 0.45 * len(panel.lanes)
        case Grid():
            return 0.8 + 0.5 * len(panel.cells)
        case Network():
            return 0.3 + panel.aspect * WIDTH
    return 3.4

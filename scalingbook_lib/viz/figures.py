"""How is a view drawn with matplotlib? Panel by panel, with the page's colours, scales and ticks."""

import math

from matplotlib.figure import Figure

from scalingbook_lib.explorers.view import Bars, Chart, Grid, Network, Timeline, View
from scalingbook_lib.viz import charts, pictures, style

_PANELS = {
    Chart: charts.chart,
    Bars: charts.bars,
    Timeline: charts.timeline,
    Grid: pictures.grid,
    Network: pictures.network,
}


def draw(view: View, fig: Figure | None = None) -> Figure:
    """All panels of a view on a figure, one below the other or in its columns; nothing is shown."""
    with style.book():
        rows = math.ceil(len(view.panels) / view.columns)
        fig = fig or Figure(figsize=(7.2, 3.4 * rows))
        fig.clear()
        axes = list(fig.subplots(rows, view.columns, squeeze=False).flat)
        for ax, panel in zip(axes, view.panels, strict=False):
            _PANELS[type(panel)](panel, ax)
            ax.set_title(panel.title)
        for ax in axes[len(view.panels) :]:
            ax.set_axis_off()
    return fig

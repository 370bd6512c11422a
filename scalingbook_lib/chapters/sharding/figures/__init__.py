"""What is drawn in the chapter on sharding? Its figures, in its order."""

from scalingbook_lib.chapters.sharding.figures import cuts, movements, prices

FIGURES = (
    cuts.two_cuts,
    cuts.eleven,
    cuts.cases,
    movements.collectives,
    movements.ring,
    movements.line,
    prices.bend,
    prices.border,
    prices.three,
    movements.transpose,
    prices.lanes,
)

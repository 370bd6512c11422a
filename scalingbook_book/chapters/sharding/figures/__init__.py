"""What is drawn in the chapter on sharding and on its deeper pages? Their figures, in their order."""

from scalingbook_book.chapters.sharding.figures import cuts, deeper, movements, prices

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
    deeper.shapes,
    deeper.slices,
    deeper.detour,
    deeper.omits,
    deeper.rounds,
    cuts.collectives_by_hand,
)

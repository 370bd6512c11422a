"""The figures of the chapter on sharding and of its deeper pages, in the order of the pages."""

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

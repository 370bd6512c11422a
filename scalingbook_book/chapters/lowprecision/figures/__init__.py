"""The figures of the chapter on low precision, in the order of the page."""

from scalingbook_book.chapters.lowprecision.figures import boundaries, numbers, optimizers, served

FIGURES = (
    boundaries.moved,
    numbers.rulers,
    numbers.outlier,
    numbers.blocks,
    numbers.walk,
    boundaries.wide,
    optimizers.state,
    optimizers.singular,
    optimizers.layouts,
    served.served,
)

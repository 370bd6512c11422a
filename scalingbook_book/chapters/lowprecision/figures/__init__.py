"""What is drawn in the chapter on smaller numbers and better optimizers? Its figures, in its order."""

from scalingbook_book.chapters.lowprecision.figures import boundaries, numbers, optimizers

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
)

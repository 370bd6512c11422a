"""What can be tried in the chapter on smaller numbers? Its explorers, in their order."""

from scalingbook_book.chapters.lowprecision.explorers import boundaries, numbers, optimizers

EXPLORERS = (
    numbers.BENCH,
    numbers.WALK,
    boundaries.LADDER,
    boundaries.MIXER,
    optimizers.STATE,
    optimizers.LAYOUTS,
)

"""The explorers of the chapter on low precision, in the order of the page."""

from scalingbook_book.chapters.lowprecision.explorers import boundaries, numbers, optimizers

EXPLORERS = (
    numbers.BENCH,
    numbers.WALK,
    boundaries.LADDER,
    boundaries.MIXER,
    optimizers.STATE,
    optimizers.LAYOUTS,
)

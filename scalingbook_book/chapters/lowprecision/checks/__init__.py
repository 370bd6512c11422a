"""Which exercises does the chapter on low precision have? In the order of their headings."""

from scalingbook_book.chapters.lowprecision.checks import boundaries, numbers, optimizers

CHECKS = (*numbers.CHECKS, *boundaries.CHECKS, *optimizers.CHECKS)

"""The exercises of the chapter on low precision, in the order of their headings."""

from scalingbook_book.chapters.lowprecision.checks import boundaries, numbers, optimizers, recipes

CHECKS = (*numbers.CHECKS, *boundaries.CHECKS, *optimizers.CHECKS, *recipes.CHECKS)

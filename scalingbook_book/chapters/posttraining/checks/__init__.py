"""Which exercises does the chapter on what comes after pretraining have? In the order of their headings."""

from scalingbook_book.chapters.posttraining.checks import energy, rollouts, stops

CHECKS = (*rollouts.CHECKS, *stops.CHECKS, *energy.CHECKS)

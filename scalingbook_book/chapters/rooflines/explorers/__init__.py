"""Explorers of the chapter on rooflines, in the order of the page."""

from scalingbook_book.chapters.rooflines.explorers import (
    batch,
    levels,
    measured,
    overlap,
    roofline,
    tiles,
    tokens,
)

EXPLORERS = (
    overlap.OVERLAP,
    roofline.ROOFLINE,
    batch.BATCH,
    batch.CRITICAL_BATCH,
    tokens.TOKENS,
    tiles.TILES,
    tiles.SPLIT,
    levels.LEVELS,
    measured.MEASURED,
)

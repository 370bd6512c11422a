"""How does a TPU work, and how long does anything on it take? The explorers of the TPU chapter."""

from scalingbook_book.chapters.tpus.explorers import (
    chain,
    generations,
    ladder,
    padding,
    peak,
    pipeline,
    route,
    slices,
    systolic,
)

EXPLORERS = (
    systolic.SYSTOLIC,
    pipeline.PIPELINE,
    padding.PADDING,
    ladder.LADDER,
    slices.SLICES,
    peak.PEAK,
    chain.CHAIN,
    route.ROUTE,
    generations.GENERATIONS,
)

"""The explorers of the chapters on TPUs, the chip and the network."""

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

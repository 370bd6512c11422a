"""The explorers of the chapter on sharding, in the order of its pages."""

from scalingbook_book.chapters.sharding.explorers import (
    cases,
    latency,
    overlap,
    painter,
    player,
    reshard,
    strategies,
    torus,
    transpose,
)

EXPLORERS = (
    painter.PAINTER,
    player.PLAYER,
    latency.LATENCY,
    cases.CASE_SOLVER,
    torus.TORUS,
    reshard.RESHARD,
    transpose.TRANSPOSE,
    strategies.STRATEGIES,
    overlap.OVERLAP,
)

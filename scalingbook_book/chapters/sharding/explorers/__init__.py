"""What does a sharded array cost? The explorers of the sharding chapter, in its order."""

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

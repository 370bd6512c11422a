"""The explorers of the GPU chapters: the chip, its network, and the limits of parallelism."""

from scalingbook_book.chapters.gpus.explorers import (
    alltoall,
    atlas,
    fabric,
    inner_axis,
    measured,
    moe,
    occupancy,
    plan,
    sharp,
    tile,
)

EXPLORERS = (
    atlas.ATLAS,
    fabric.FABRIC,
    measured.MEASURED,
    sharp.SHARP,
    inner_axis.INNER_AXIS,
    alltoall.ALLTOALL,
    plan.PLAN,
    moe.MOE,
    occupancy.OCCUPANCY,
    tile.TILE,
)

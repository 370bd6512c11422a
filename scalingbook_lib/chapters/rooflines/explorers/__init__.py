"""What limits one operation? The explorers of the chapter on rooflines."""

from scalingbook_lib.chapters.rooflines.explorers.batch import BATCH, CRITICAL_BATCH
from scalingbook_lib.chapters.rooflines.explorers.levels import LEVELS
from scalingbook_lib.chapters.rooflines.explorers.measured import MEASURED
from scalingbook_lib.chapters.rooflines.explorers.overlap import OVERLAP
from scalingbook_lib.chapters.rooflines.explorers.roofline import ROOFLINE
from scalingbook_lib.chapters.rooflines.explorers.tiles import SPLIT, TILES
from scalingbook_lib.chapters.rooflines.explorers.tokens import TOKENS

EXPLORERS = (
    OVERLAP,
    ROOFLINE,
    BATCH,
    CRITICAL_BATCH,
    TOKENS,
    TILES,
    SPLIT,
    LEVELS,
    MEASURED,
)

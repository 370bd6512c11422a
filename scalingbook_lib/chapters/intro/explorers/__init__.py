"""What do more chips buy? The explorers of the introduction."""

from scalingbook_lib.chapters.intro.explorers.book_map import BOOK_MAP
from scalingbook_lib.chapters.intro.explorers.more_chips import ADD_CHIPS, BREAK_EVEN, REGIMES
from scalingbook_lib.chapters.intro.explorers.quantities import UNITS

EXPLORERS = (
    ADD_CHIPS,
    BREAK_EVEN,
    UNITS,
    REGIMES,
    BOOK_MAP,
)

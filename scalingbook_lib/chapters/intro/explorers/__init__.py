"""What do more chips buy? The explorers of the introduction."""

from scalingbook_lib.chapters.intro.explorers import book_map, more_chips, quantities

EXPLORERS = (
    more_chips.ADD_CHIPS,
    more_chips.BREAK_EVEN,
    quantities.UNITS,
    more_chips.REGIMES,
    book_map.BOOK_MAP,
)

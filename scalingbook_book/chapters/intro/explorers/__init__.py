"""The explorers of the introduction, in the order of its pages."""

from scalingbook_book.chapters.intro.explorers import book_map, more_chips, quantities, regimes

EXPLORERS = (
    more_chips.ADD_CHIPS,
    more_chips.BREAK_EVEN,
    quantities.UNITS,
    regimes.REGIMES,
    book_map.BOOK_MAP,
)

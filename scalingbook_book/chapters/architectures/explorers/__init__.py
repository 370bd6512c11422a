"""The explorers of the chapter on other architectures, in the order of the page."""

from scalingbook_book.chapters.architectures.explorers import frontier, mixing, writing

EXPLORERS = (
    mixing.CHUNK,
    mixing.STRIP,
    mixing.RELAY,
    mixing.COSTS,
    writing.BLOCKS,
    writing.VIDEO,
    frontier.FRONTIER,
)

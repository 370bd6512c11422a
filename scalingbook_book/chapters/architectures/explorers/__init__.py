"""What can be tried in the chapter on other architectures? Its explorers, in their order."""

from scalingbook_book.chapters.architectures.explorers import mixing, writing

EXPLORERS = (mixing.CHUNK, mixing.STRIP, mixing.RELAY, mixing.COSTS, writing.BLOCKS, writing.VIDEO)

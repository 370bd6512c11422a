"""The exercises of the chapter on other architectures, in the order of their headings."""

from scalingbook_book.chapters.architectures.checks import frontier, mixing, writing

CHECKS = tuple(
    sorted((*mixing.CHECKS, *writing.CHECKS, *frontier.CHECKS), key=lambda check: check.difficulty)
)

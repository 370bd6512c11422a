"""The checks of the introduction, in the order of its exercises."""

from scalingbook_book.chapters.intro.checks.many_chips import MANY_CHIPS
from scalingbook_book.chapters.intro.checks.sizes import SIZES

CHECKS = SIZES + MANY_CHIPS

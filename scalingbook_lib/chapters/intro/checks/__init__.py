"""Can a reader answer the day-one questions with a pocket calculator? Checks of the introduction."""

from scalingbook_lib.chapters.intro.checks.many_chips import MANY_CHIPS
from scalingbook_lib.chapters.intro.checks.sizes import SIZES

CHECKS = SIZES + MANY_CHIPS

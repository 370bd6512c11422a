"""The checks of the exercises on inference."""

from scalingbook_book.chapters.inference.checks.agents import AGENTS
from scalingbook_book.chapters.inference.checks.machines import MACHINES, SERVERS
from scalingbook_book.chapters.inference.checks.prefixes import PREFIXES
from scalingbook_book.chapters.inference.checks.sizes import SIZES
from scalingbook_book.chapters.inference.checks.speculative import ACCEPTED, BUILT
from scalingbook_book.chapters.inference.checks.trades import TRADES

CHECKS = SIZES + MACHINES + SERVERS + ACCEPTED + TRADES + BUILT + PREFIXES + AGENTS

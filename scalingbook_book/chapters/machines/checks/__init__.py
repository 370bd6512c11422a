"""Which exercises does the chapter on other machines have? In the order of their headings."""

from scalingbook_book.chapters.machines.checks import exchange, sheets

CHECKS = tuple(sorted((*sheets.CHECKS, *exchange.CHECKS), key=lambda check: check.difficulty))

"""The exercises of the chapter on other machines, in the order of their headings."""

from scalingbook_book.chapters.machines.checks import exchange, sheets

CHECKS = tuple(sorted((*sheets.CHECKS, *exchange.CHECKS), key=lambda check: check.difficulty))

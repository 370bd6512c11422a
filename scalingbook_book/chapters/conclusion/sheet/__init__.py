"""The cheat sheet of the book, on one page.

`page()` has the formulas, each with its letters, its conditions and one worked example, and the numbers to
know. The library computes every example and number; a test works each formula out by hand. Chapter:
Conclusions.
"""

from scalingbook_book.chapters.conclusion.sheet.formulas import FORMULAS, Formula
from scalingbook_book.chapters.conclusion.sheet.page import NUMBERS, Number, Page, page

__all__ = ["FORMULAS", "NUMBERS", "Formula", "Number", "Page", "page"]

"""What should be remembered of this book on one page?

`page()` has the formulas, with their letters, conditions and one worked case each, and the numbers to know.
Every case and number is computed by the library; a test works each formula out by hand. Chapter: Conclusions.
"""

from scalingbook_book.chapters.conclusion.sheet.formulas import FORMULAS, Formula
from scalingbook_book.chapters.conclusion.sheet.page import NUMBERS, Number, Page, page

__all__ = ["FORMULAS", "NUMBERS", "Formula", "Number", "Page", "page"]

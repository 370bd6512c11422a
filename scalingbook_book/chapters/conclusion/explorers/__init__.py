"""The explorers of the conclusions, in the order of the page."""

from scalingbook_book.chapters.conclusion.explorers import errors, estimate

EXPLORERS = (errors.ERRORS, estimate.ESTIMATE)

"""How wrong may a prediction be, and who can make one without paper? The explorers of the last chapter."""

from scalingbook_book.chapters.conclusion.explorers import errors, estimate

EXPLORERS = (errors.ERRORS, estimate.ESTIMATE)

"""How wrong may a prediction be, and who can make one without paper? The explorers of the last chapter."""

from scalingbook_lib.chapters.conclusion.explorers.errors import ERRORS
from scalingbook_lib.chapters.conclusion.explorers.estimate import ESTIMATE

EXPLORERS = (ERRORS, ESTIMATE)

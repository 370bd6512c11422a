"""How wrong may a prediction be, and who can make one without paper? The explorers of the last chapter."""

from scalingbook_lib.explorers.conclusion_errors import ERRORS
from scalingbook_lib.explorers.conclusion_estimate import ESTIMATE

EXPLORERS = (ERRORS, ESTIMATE)

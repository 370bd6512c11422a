"""How wrong may a prediction be? The explorer of the last chapter."""

from scalingbook_lib.explorers.conclusion_errors import ERRORS

EXPLORERS = (ERRORS,)

"""How does an explorer stand in a page before any script runs?"""

from typing import Any

from scalingbook_lib.explorers.view import View


def explorer(explorer: Any, view: View, suffix: str = "") -> str:
    """The whole explorer as static HTML."""
    return ""

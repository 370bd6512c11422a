"""List prices and announcements of the catalog that should be checked again.

`make stale`, or `python -m tools.reference.stale 2027-06-01`: those older than half a year on that day, the
oldest first. Younger ones are counted.
"""

import sys
from datetime import date

from scalingbook_lib.machines import age, chips


def report(today: date) -> str:
    """Return the printed list."""
    found = sorted(age.stale_candidates(chips.ALL.values(), today), key=lambda one: one.source.as_of)
    old = [one for one in found if one.stale]
    young = f"{len(found) - len(old)} of {len(found)} prices and announcements are younger on {today}."
    return "\n".join([*map(str, old), young])


if __name__ == "__main__":
    print(report(date.fromisoformat(sys.argv[1]) if sys.argv[1:] else date.today()))

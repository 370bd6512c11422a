"""Records the plans of published runs and what their errors say of plans unlike them: `python -m
tools.measured_plans`, a few seconds.

It writes `measured_plans.json` and `plan_spread.json` in scalingbook_lib/calibrated/data. The spread depends
on the errors that `tools.calibrate` recorded, so this comes after it.
"""

import json
from dataclasses import asdict
from pathlib import Path

from scalingbook_lib.calibrated import records
from scalingbook_lib.evidence.training import spread

FOLDER = Path(records.__file__).parent / "data"


def frozen() -> dict[str, str]:
    """The records as JSON text, by the name of their file; a plan per line."""
    plans = ",\n".join(json.dumps(asdict(one)) for one in spread.measured_plans())
    spreads = {"dense": asdict(spread.spread(False)), "experts": asdict(spread.spread(True))}
    return {
        "measured_plans.json": f"[\n{plans}\n]\n",
        "plan_spread.json": json.dumps(spreads, indent=1) + "\n",
    }


if __name__ == "__main__":
    for name, text in frozen().items():
        (FOLDER / name).write_text(text, encoding="utf-8")

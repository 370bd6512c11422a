"""Which published runs of inference are left out, and why?

A run is usable where the source names the model and its shapes, the chips and how they were split, the work
(prompt, tokens generated or context, and how many sequences at once, unless the engine takes all that fit),
and prints a time or a rate. Chapter: Inference.
"""

_IDS = {
    "how many requests ran at once is not given, and the figure doubled within weeks": "inf-0337 inf-0338",
    "the same measurement as another row, from another table of its paper": "inf-0009",
}

REFUSED = {reason: tuple(ids.split()) for reason, ids in _IDS.items()}
"""The ids of the rows that are left out, by the reason."""

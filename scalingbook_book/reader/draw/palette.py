"""Six colors for pictures that color-blind readers can distinguish and that are legible as text.

Every color has a contrast of at least 4.5:1: the light set on white, the dark set on #121212. A page sets the
custom properties `--ex-c0` ... `--ex-c5` to the set of its theme. Without a stylesheet, the light set
applies.
"""

LIGHT = ("#1a68e0", "#c24600", "#0a7a60", "#7a1fa2", "#5c3b00", "#475569")
DARK = ("#6ea8fe", "#f5924e", "#7ff0c5", "#d176b4", "#ffd24a", "#b8bcc4")

INKS = tuple(f"var(--ex-c{i},{light})" for i, light in enumerate(LIGHT))


def ink(color: int) -> str:
    """Return the color with this index as an SVG paint; indices wrap around."""
    return INKS[color % len(INKS)]

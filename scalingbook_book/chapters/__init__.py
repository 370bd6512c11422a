"""What does each chapter hand to its reader? Explorers and checks, a room a chapter."""

from pkgutil import iter_modules


def stems() -> tuple[str, ...]:
    """The chapters: every room here has explorers and checks."""
    return tuple(sorted(room.name for room in iter_modules(__path__) if room.ispkg))

"""The explorers, figures and checks of each chapter, one package per chapter."""

from pkgutil import iter_modules


def stems() -> tuple[str, ...]:
    """The chapters: every room here has explorers and checks."""
    return tuple(sorted(room.name for room in iter_modules(__path__) if room.ispkg))

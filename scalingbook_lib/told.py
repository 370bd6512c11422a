"""How does a result introduce itself? With a sentence."""

from typing import Any


class Told:
    """A result that tells itself: a notebook shows `str()`, a debugger `repr()`."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(type(self).__name__ if cycle else str(self))

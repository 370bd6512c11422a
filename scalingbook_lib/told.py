"""How does a result introduce itself? With a sentence."""

from typing import Any


class Told:
    """A result that tells itself: a notebook shows `str()`, a debugger `repr()`."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give every result its own: IPython asks a class for its `__repr__` before it asks the bases."""
        super().__init_subclass__(**kwargs)
        cls._repr_pretty_ = Told._repr_pretty_

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(type(self).__name__ if cycle else str(self))

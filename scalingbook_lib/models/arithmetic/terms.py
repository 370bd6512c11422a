"""Named terms that sum to a total."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from scalingbook_lib.units import Result, count_in_words, percent, si


@dataclass(frozen=True, slots=True)
class Term(Result):
    """One summand: its name, its value, and how it was counted."""

    name: str
    value: float
    why: str = ""

    def __str__(self) -> str:
        return f"{self.name} {si(self.value)}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True)
class Terms(Result):
    """Summands in the order in which a token meets them."""

    terms: tuple[Term, ...]
    unit: ClassVar[str] = ""

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return sum(term.value for term in self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms."""
        return tuple(term.name for term in self.terms)

    def __getitem__(self, name: str) -> float:
        """The value of the term of that name; a KeyError that lists the terms where there is none."""
        for term in self.terms:
            if term.name == name:
                return term.value
        raise KeyError(f"no term {name!r} here; there are {', '.join(self.names)}")

    def get(self, name: str) -> float:
        """The value of the term of that name, 0 where there is none."""
        # of models without experts, say, nobody has to ask first whether there is a router
        return self[name] if name in self.names else 0

    def share(self, *names: str) -> float:
        """The share of the total that these terms make up."""
        return sum(map(self.get, names)) / self.total if self.total else 0.0

    def parts(self) -> str:
        """Every term with its value and its share, as text."""
        return ", ".join(
            f"{t.name} {large(t.value, self.unit)} ({percent(self.share(t.name))})" for t in self.terms
        )

    def __str__(self) -> str:
        return f"{large(self.total, self.unit)}: {self.parts()}"


@dataclass(frozen=True)
class Bytes(Terms):
    """Terms that are bytes of a memory."""

    unit = "B"

    @property
    def nbytes(self) -> float:
        """The total in bytes."""
        return self.total


def large(value: float, unit: str) -> str:
    """The number with its unit, as a power of ten beyond the prefixes: 7.22e24 FLOPs; counts in words."""
    if not unit:
        return count_in_words(value)
    # beyond exa there is no prefix that people read
    return si(value, unit) if abs(value) < 1e21 else f"{value:.3g} {unit}".replace("e+", "e")


def whole(value: float | Fraction) -> float:
    """The value as an int where it is integral, so that counts compare exactly."""
    exact = Fraction(value)  # a float is a fraction too, so nothing is rounded on the way
    return int(exact) if exact.denominator == 1 else float(exact)

"""How does a derivation write its numbers? So that a reader can type them into a calculator."""

from collections.abc import Iterable

from scalingbook_lib.units import binary, percent, si

SHARE = "share"  # of one, printed in percent


def figure(value: float) -> str:
    """All digits of a count, six significant figures of any other number: 8,192 and 1.97e14."""
    short = f"{value:.6g}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
    if float(value).is_integer() and abs(value) < 1e15 and (isinstance(value, int) or abs(value) < 1e6):
        return f"{int(value):,}"
    return short


def product(*values: float) -> str:
    """'2 · 64 · 8,192'."""
    return " · ".join(map(figure, values))


def added(terms: Iterable[str]) -> str:
    """'a · b + c · d', and 0 for nothing."""
    return " + ".join(terms) or "0"


def told(value: float, unit: str) -> str:
    """A result with its unit, as a person reads it: bytes in both kinds of prefix."""
    if unit in ("FLOPs", "tokens", "parameters") and abs(value) >= 1e21:
        return f"{value:.3g} {unit}".replace("e+", "e")
    if unit == "B":
        return nbytes(value)
    if unit == "USD":
        return f"{value:,.3g} USD"
    if unit == SHARE:
        return percent(value, 3)
    if unit == "s" and abs(value) >= 1e4:  # nobody counts kiloseconds
        return f"{value:,.0f} s"
    return si(value, unit)


def nbytes(value: float) -> str:
    """'141 GB = 131.4 GiB'; a small or a round number once."""
    decimal, power = si(value, "B"), binary(value)
    return decimal if value < 1000 else f"{decimal} = {power}"

"""A wrong number: what is the likeliest cause?

Every slip multiplies the right answer by a factor that gives it away. The message names the slip, never the
answer.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

_TIMES = {"s", "B/s", "FLOP/s"}


@dataclass(frozen=True, slots=True)
class Slip:
    """A factor between a wrong answer and the right one, and what usually causes it."""

    factor: float
    says: str


def likely(given: float, answer: float, unit: str, *, tol: float, chips: int | None = None) -> str:
    """The likeliest cause of `given` where `answer` is right; how far off it is where no cause fits."""
    if given == 0 or not math.isfinite(given) or not math.isfinite(answer) or answer == 0:
        return _at_the_edge(given, answer)
    near = max(min(tol, 0.01), 1e-3)
    for slip in slips(unit, chips):
        if math.isclose(given / answer, slip.factor, rel_tol=near):
            return slip.says
    return _other_function(given, answer, near) or _how_far(given / answer)


def slips(unit: str, chips: int | None) -> Iterator[Slip]:
    """The slips that are possible for an answer in this unit, the likeliest first."""
    if chips is not None and chips > 1:
        yield from _per_chip(chips)
    yield from _twos(unit)
    if "B" in unit.split("/") or unit in _TIMES:
        yield Slip(8.0, "It is 8 times too large: bits where bytes are meant?")
        yield Slip(1 / 8, "It is 8 times too small: bits where bytes are meant?")
    yield Slip(
        4.0, "It is 4 times too large: two factors of two, such as bytes per element and both ways of a link."
    )
    yield Slip(
        0.25,
        "It is 4 times too small: two factors of two, such as bytes per element and both ways of a link.",
    )
    yield Slip(-1.0, "The size is right and the sign is not.")
    if unit == "":
        yield Slip(
            100.0, "It is 100 times too large: a percentage where a fraction is meant? Write 40 % or 0.4."
        )
        yield Slip(0.01, "It is 100 times too small: a fraction where a percentage is meant?")
    if "B" in unit.split("/") or unit == "s":
        yield from _binary_for_decimal()
    yield from _prefixes()


def _twos(unit: str) -> Iterator[Slip]:
    cause = {
        "FLOP": "a multiply-add is two FLOPs",
        "B": "an element of bf16 takes two bytes",
        "B/s": "one way of a link is not both ways",
    }.get(unit, "two FLOPs a multiply-add, two bytes an element of bf16, two ways of a link")
    yield Slip(0.5, f"It is half of what it should be. Remember: {cause}.")
    yield Slip(2.0, f"It is twice what it should be. Count once what is there once: {cause}.")


def _per_chip(chips: int) -> Iterator[Slip]:
    yield Slip(
        float(chips), "It is too large by the number of chips: per chip is asked for, not for all of them."
    )
    yield Slip(1 / chips, "It is too small by the number of chips: all of them are asked for, not one chip.")
    share = chips / (chips - 1)
    if chips > 2:
        own = "each chip already holds its own part, so only (N - 1)/N of it moves"
        yield Slip(share, f"Close. Was the part counted that does not move? Remember: {own}.")
        yield Slip(
            1 / share,
            f"Close. Was the part left out that a chip already holds? The asked form counts it: {own}.",
        )


def _binary_for_decimal() -> Iterator[Slip]:
    for power, binary, decimal in ((1, "KiB", "KB"), (2, "MiB", "MB"), (3, "GiB", "GB"), (4, "TiB", "TB")):
        excess = 1.024**power
        mixed = (
            f"a {binary} is 2^{10 * power} bytes, a {decimal} is 10^{3 * power}: which one does this ask for?"
        )
        yield Slip(excess, f"Slightly too large, as when binary and decimal prefixes are mixed: {mixed}")
        yield Slip(1 / excess, f"Slightly too small, as when binary and decimal prefixes are mixed: {mixed}")


def _prefixes() -> Iterator[Slip]:
    for steps in (1, 2, 3, 4):
        prefixes = "one prefix" if steps == 1 else f"{steps} prefixes"
        for base in (1000.0, 1024.0):
            yield Slip(
                base**steps, f"The digits are right; it is {prefixes} too large (k, M, G, T; m, µ, n)."
            )
            yield Slip(
                base**-steps, f"The digits are right; it is {prefixes} too small (k, M, G, T; m, µ, n)."
            )


def _other_function(given: float, answer: float, near: float) -> str | None:
    """The right number seen through the wrong function."""
    if math.isclose(given * answer, 1, rel_tol=near):
        return "It is upside down: divide the other way round."
    if answer > 0 and any(
        math.isclose(given, log(answer), rel_tol=near) for log in (math.log, math.log2, math.log10)
    ):
        return "It is the logarithm of what is asked for."
    return None


def _at_the_edge(given: float, answer: float) -> str:
    if given == 0:
        return "It is not zero."
    if math.isinf(answer):
        return "No finite number is right here: ask what happens however far you go."
    if math.isinf(given):
        return "It is finite: is there a division by zero on the way?"
    return "No cause is known for that; work it through term by term, with the units."


def _how_far(ratio: float) -> str:
    """How far off, in words too coarse to work the answer out from."""
    if ratio < 0:
        return "It has the wrong sign."
    direction, off = ("large", ratio) if ratio > 1 else ("small", 1 / ratio if ratio > 1e-300 else math.inf)
    for limit, size in (
        (1.1, "by less than 10 %"),
        (2, "by less than a factor of two"),
        (10, "by a factor of two to ten"),
    ):
        if off < limit:
            return f"It is too {direction}, {size}."
    return f"It is too {direction} by more than a factor of ten: check the units of every term."

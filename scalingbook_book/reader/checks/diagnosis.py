"""Diagnose the most likely cause of a wrong number.

A slip has a name and a sentence that describes it. Two kinds of slips are tried, both only if the exercise
allows them: those that were derived from its solution (`slips.csv`, written by `tools/slips.py`), and those
that multiply any answer by a factor, such as bits for bytes, if the question's wording makes them possible. A
message names the slip, never the answer.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

_SIZES = {"fp32": "four bytes", "bf16": "two bytes", "int8": "one byte", "fp8": "one byte"}


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that an exercise mentions, and the results of its slips.

    A fact is a word such as "bf16", "link" or "hops", or a number of things, as in "64:chip". A slip's
    results are multiples of the right answer.
    """

    facts: frozenset[str] = frozenset()
    slips: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @property
    def counts(self) -> dict[int, str]:
        """The things that the exercise counts, by their number."""
        split = (fact.partition(":") for fact in sorted(self.facts) if ":" in fact)
        return {int(count): noun for count, _, noun in split}


NOTHING = Known()


@dataclass(frozen=True, slots=True)
class Slip:
    """A factor between a wrong answer and the right one, its cause, and the sentence about it."""

    factor: float
    message: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The sentence about a wrong number, and the names of the slips that it mentions."""

    message: str
    slips: tuple[str, ...] = ()


# The names of the slips, most likely first. If two lead to the same number, the message names both.
SAYS = {
    "hops-left-out": "You left out the latency of the hops, but the question includes it.",
    "wrong-hops": "The number of hops is not right. How far apart are the two ends, and is the axis a ring?",
    "fraction-left-out": "Did you count the part that does not move? Each chip already holds its own part.",
    "complement": "That is the remainder. The question asks for the other part.",
    "inverted-ratio": "That is the inverse of the answer: swap numerator and denominator.",
    "one-direction": "You counted only one direction of the links, but a ring uses both.",
    "both-directions": "You counted both directions of a link, but these bytes use only one.",
    "value-left-out": "A cache holds keys and values. Did you count only one of them?",
    "one-pass": "An AllReduce moves the array twice: it is a ReduceScatter followed by an AllGather.",
    "two-passes": "That moves the array twice, as an AllReduce does. Is one pass enough here?",
    "forward-only": "That is the forward pass alone. The backward pass takes twice as many FLOPs.",
    "factor-two-flops": "A multiply-add is two FLOPs. Did you count this factor of two exactly once?",
    "bytes-for-count": "Elements and bytes are mixed up. How many bytes does one element take?",
    "wrong-dtype-size": "Check the number of bytes per element",
    "bits-for-bytes": "A byte has 8 bits. Did you confuse bits with bytes?",
    "binary-for-decimal": "Binary and decimal prefixes are mixed up: 1 KiB is 2^10 bytes, 1 kB is 10^3.",
    "sum-for-max": (
        "You added the terms, but here only the longer one counts, because the shorter one overlaps with it."
    ),
    "max-for-sum": "You took the longer term, but here the two add up, because nothing overlaps.",
    "wrong-stage": "That is the other of the two terms. Which one is longer?",
    "rounding": "Check the rounding. Does a fraction count, and do you have to round up or down?",
    "off-by-one": "Your count is off by one. Check where it begins and where it ends.",
    "power": "A power or a root is missing, or there is one too many.",
    "wrong-chip": "That uses the number of another chip. Which one does the question name?",
    "wrong-rate": "That uses another rate of the chip. Which data type or link does the question name?",
    "one-for-total": "That is for one of them. The question asks for all.",
    "total-for-one": "That is for all of them. Does the question ask for one, or do they share the work?",
    "term-left-out": "A term of the sum is missing. Write down everything that adds up.",
    "factor-left-out": "A factor is missing. Which of the numbers in the question did you not use?",
    "intermediate": "That is an intermediate result, not yet the answer to the question.",
    "factor-two": "A factor of two is missing, or there is one too many.",
    "percent-for-share": "It is 100 times too large. Is this a percentage? If so, write 40% or 0.4.",
    "share-for-percent": "It is 100 times too small. Did you give a fraction instead of a percentage?",
    "wrong-unit": "The digits are right, but the unit of time is wrong.",
    "sign": "The magnitude is right, but the sign is not.",
    "wrong-prefix": "The digits are right. Check the prefix (k, M, G, T; m, µ, n).",
}
_RANK = {name: place for place, name in enumerate(SAYS)}
_MOST_NAMED = 2
_VAGUE = {"factor-two", "factor-left-out", "inverted-ratio", "intermediate"}  # named only if all others fail


def likely(
    given: float, answer: float, unit: str, *, tol: float, chips: int | None = None, known: Known = NOTHING
) -> Diagnosis:
    """Return the most likely cause of `given` when `answer` is right, or how far off it is without one."""
    if given == 0 or not math.isfinite(given) or not math.isfinite(answer) or answer == 0:
        return Diagnosis(_at_the_edge(given, answer))
    near = max(min(tol, 0.01), 1e-3)
    fitting = [
        slip
        for slip in (*slips(unit, chips, known), *of_solution(known), *_other_functions(answer, unit))
        if math.isclose(given / answer, slip.factor, rel_tol=near)
    ]
    if not fitting:
        return Diagnosis(_how_far(given / answer))
    return _named(sorted(fitting, key=lambda slip: _RANK[slip.name]), given / answer)


def _named(fitting: list[Slip], ratio: float) -> Diagnosis:
    """Return one message about the most likely slips."""
    first: dict[str, str] = {}
    for slip in fitting:
        first.setdefault(slip.name, slip.message)
    first = {name: says for name, says in first.items() if name not in _VAGUE} or first
    shown = dict(list(first.items())[:_MOST_NAMED])
    return Diagnosis(_size(ratio) + " Or: ".join(shown.values()), tuple(shown))


def _size(ratio: float) -> str:
    for factor, sentence in (
        (0.5, "That is half of the answer. "),
        (2.0, "That is twice the answer. "),
    ):
        if math.isclose(ratio, factor, rel_tol=0.01):
            return sentence
    return ""


def of_solution(known: Known) -> Iterator[Slip]:
    """Yield the slips that were derived from the solution of the exercise."""
    for name, factors in known.slips:
        yield from (Slip(factor, _message_of(name, known), name) for factor in factors)


def _message_of(name: str, known: Known) -> str:
    if name == "wrong-dtype-size":
        sizes = [f"an element of {t} takes {size}" for t, size in _SIZES.items() if t in known.facts]
        return f"{SAYS[name]}{': ' + ' and '.join(sizes) if sizes else ''}."
    return SAYS[name]


def slips(unit: str, chips: int | None, known: Known = NOTHING) -> Iterator[Slip]:
    """Yield the slips that multiply any answer in this unit, if the exercise mentions what they are about."""
    yield from _counted(chips, known)
    parts = set(unit.split("/"))
    in_bytes = "B" in parts or bool(known.facts & {"bytes"})
    if in_bytes or "link" in known.facts:
        for factor in (8.0, 1 / 8):
            yield Slip(factor, SAYS["bits-for-bytes"], "bits-for-bytes")
    yield from _twos(unit, known)
    yield Slip(-1.0, SAYS["sign"], "sign")
    if unit == "":
        yield Slip(100.0, SAYS["percent-for-share"], "percent-for-share")
        yield Slip(0.01, SAYS["share-for-percent"], "share-for-percent")
    if "B" in parts and "FLOP" not in parts:  # an intensity has no prefix
        yield from _binary_for_decimal()
    if unit == "s":
        yield from (
            Slip(f, SAYS["wrong-unit"], "wrong-unit") for f in (60.0, 1 / 60, 24.0, 1 / 24, 3600.0, 1 / 3600)
        )
    yield from _prefixes()


def _twos(unit: str, known: Known) -> Iterator[Slip]:
    """Yield factors of 2 and 1/2 for things of which the exercise has two."""
    possible = [
        ("both-directions", (2.0, 0.5), "link" in known.facts),
        ("one-direction", (2.0, 0.5), "link" in known.facts),
        ("factor-two-flops", (0.5, 2.0), "FLOP" in unit.split("/") or "flops" in known.facts),
        ("wrong-dtype-size", (0.5, 2.0), bool(known.facts & {*_SIZES})),
        ("value-left-out", (0.5,), "cache" in known.facts),
        ("factor-two", (0.5, 2.0), True),
    ]
    for name, factors, allowed in possible:
        for factor in factors if allowed else ():
            yield Slip(factor, _message_of(name, known), name)
    if known.facts & {*_SIZES}:
        for factor in (0.25, 4.0):
            yield Slip(factor, _message_of("wrong-dtype-size", known), "wrong-dtype-size")


def _counted(chips: int | None, known: Known) -> Iterator[Slip]:
    """Yield the slips that count one thing instead of all, or all instead of one."""
    counts = known.counts | ({chips: "chip"} if chips else {})
    for count, noun in counts.items():
        if count > 2 or (noun == "chip" and count > 1):
            large = (
                f"It is too large by the number of {_many(noun)}. The question asks for one, not for all "
                "of them."
            )
            small = (
                f"It is too small by the number of {_many(noun)}. The question asks for all of them, not "
                "for one."
            )
            yield Slip(float(count), large, "total-for-one")
            yield Slip(1 / count, small, "one-for-total")
    if chips and chips > 2:
        own = "each chip already holds its own part, so only (N - 1)/N of the array moves"
        moved = f"Close. Did you count the part that does not move? Remember that {own}."
        held = "Close. Did you leave out the part that a chip already holds? Here, that part counts, too."
        yield Slip(chips / (chips - 1), moved, "fraction-left-out")
        yield Slip((chips - 1) / chips, held, "fraction-left-out")


def _many(noun: str) -> str:
    if any(sign.isdigit() for sign in noun):
        return "chips"  # v5e, B200
    return {"axis": "axes", "matrix": "matrices"}.get(noun, f"{noun}s")


def _binary_for_decimal() -> Iterator[Slip]:
    for power, binary, decimal in ((1, "KiB", "KB"), (2, "MiB", "MB"), (3, "GiB", "GB"), (4, "TiB", "TB")):
        says = (
            f"Binary and decimal prefixes are mixed up: a {binary} is 2^{10 * power} bytes, a {decimal} "
            f"is 10^{3 * power}. Which of them does the question use?"
        )
        for factor in (1.024**power, 1.024**-power):
            yield Slip(factor, says, "binary-for-decimal")


def _prefixes() -> Iterator[Slip]:
    for steps in (1, 2, 3, 4):
        prefixes = "one prefix" if steps == 1 else f"{steps} prefixes"
        for base in (1000.0, 1024.0):
            for factor, size in ((base**steps, "large"), (base**-steps, "small")):
                says = f"The digits are right, but the answer is {prefixes} too {size} (k, M, G, T; m, µ, n)."
                yield Slip(factor, says, "wrong-prefix")


def _other_functions(answer: float, unit: str) -> Iterator[Slip]:
    """Yield slips that put the right number through the wrong function, such as a reciprocal."""
    if abs(answer) < 1e150 and abs(answer) > 1e-150:
        yield Slip(1 / answer**2, SAYS["inverted-ratio"], "inverted-ratio")
    if unit == "" and 0 < answer < 1:
        yield Slip((1 - answer) / answer, SAYS["complement"], "complement")
    if answer > 0:
        for log in (math.log, math.log2, math.log10):
            yield Slip(log(answer) / answer, "That is the logarithm of the answer.", "power")


def _at_the_edge(given: float, answer: float) -> str:
    if given == 0:
        return "The answer is not zero."
    if math.isinf(answer):
        return "No finite number is right here. What happens in the limit?"
    if math.isinf(given):
        return "The answer is finite. Did you divide by zero?"
    return "No likely cause was found. Work through it term by term, with units."


def _how_far(ratio: float) -> str:
    """Say how far off the ratio is, too coarsely to work out the answer."""
    if ratio < 0:
        return "It has the wrong sign."
    direction, off = ("large", ratio) if ratio > 1 else ("small", 1 / ratio if ratio > 1e-300 else math.inf)
    for limit, size in (
        (1.1, "by less than 10%"),
        (2, "by less than a factor of two"),
        (10, "by a factor of two to ten"),
    ):
        if off < limit:
            return f"It is too {direction} {size}."
    return f"It is too {direction} by more than a factor of ten. Check the units of every term."

"""Who asks, when, and for how much? Requests from chance, reproducible by seed, or from a trace.

Chapter: Inference.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import NormalDist
from typing import Any

from scalingbook_lib.units import Result, count, si

type Length = int | Callable[[Random], int]  # one length for all, or one drawn for each


class ServingError(ValueError):
    """A request, a policy or a cache that cannot be; the message says which rule it breaks."""


@dataclass(frozen=True, slots=True)
class Request(Result):
    """One prompt of `prompt` tokens, answered with `output` tokens, the first of them by the prefill.

    Of its prompt and answer, the first `prefix` tokens are those of its `family`: whoever of that family
    goes so far has the same ones. Who has no answer by `cancel_s` goes away at the next boundary of a step.
    """

    arrival_s: float
    prompt: int
    output: int
    prefix: int = 0
    family: int = 0
    cancel_s: float = math.inf

    def __post_init__(self) -> None:
        if not (math.isfinite(self.arrival_s) and self.arrival_s >= 0):
            raise ServingError(f"arrival_s = {self.arrival_s}: write a time from 0 on, in seconds")
        if self.prompt < 1 or self.output < 1:
            raise ServingError(
                f"prompt {self.prompt}, output {self.output}: a request has at least 1 of each"
            )
        if not 0 <= self.prefix <= self.prompt + self.output:
            raise ServingError(
                f"prefix = {self.prefix} of {self.prompt + self.output} tokens: "
                f"write 0 to {self.prompt + self.output}"
            )
        if not self.cancel_s >= self.arrival_s:
            raise ServingError(f"cancel_s = {self.cancel_s} lies before its arrival, {self.arrival_s} s")

    def __str__(self) -> str:
        shared = f", the first {count(self.prefix)} those of family {self.family}" if self.prefix else ""
        return (
            f"at {si(self.arrival_s, 's')}: {count(self.prompt)} tokens in{shared}, {count(self.output)} out"
        )


def uniform(low: int, high: int) -> Callable[[Random], int]:
    """A length from low to high, each as likely as the other."""
    if not 1 <= low <= high:
        raise ServingError(f"uniform({low}, {high}): write 1 <= low <= high, in tokens")
    return lambda chance: low + int(chance.random() * (high - low + 1))


def geometric(mean: float) -> Callable[[Random], int]:
    """An answer that ends after each token with the same chance: `mean` tokens in the mean, at least 1."""
    if mean < 1:
        raise ServingError(f"geometric({mean}): write a mean of at least 1 token")
    if mean == 1:
        return lambda chance: 1
    scale = math.log1p(-1 / mean)
    # the inverse of 1 - (1 - 1/mean)^n
    return lambda chance: 1 + int(math.log(1 - chance.random()) / scale)


def lognormal(mean: float, spread: float = 1.0, most: int = 2**20) -> Callable[[Random], int]:
    """Many short, few long: `mean` tokens in the mean, `spread` the deviation of the logarithm.

    Published traces of prompts and answers are nearer to this than to anything with a shorter tail. Lengths
    are cut to 1 at least and `most` at most, which lowers the mean where `most` is near it.
    """
    if mean < 1 or spread < 0 or most < 1:
        raise ServingError(
            f"lognormal({mean}, {spread}, {most}): write a mean and a most of at least 1 token"
        )
    # E[exp(N(m, s²))] = exp(m + s²/2): so the mean is as asked for.
    middle = math.log(mean) - spread * spread / 2
    normal = NormalDist()

    def draw(chance: Random) -> int:
        z = normal.inv_cdf(min(max(chance.random(), 1e-12), 1 - 1e-12))  # a draw of 0 or 1 has no deviation
        return min(max(round(math.exp(middle + spread * z)), 1), most)

    return draw


def poisson(
    rate_per_s: float,
    requests: int,
    *,
    prompt: Length,
    output: Length,
    seed: int = 0,
    families: int = 0,
    prefix: int = 0,
    patience_s: float = math.inf,
) -> tuple[Request, ...]:
    """Requests that know nothing of each other: gaps with the mean 1/rate (inf: all at once, at 0).

    With `families`, each belongs to one of them by chance and begins with that family's `prefix` tokens,
    which come before the `prompt` tokens of its own. Who waits longer than `patience_s` goes away.
    """
    if not rate_per_s > 0:
        raise ServingError(f"rate_per_s = {rate_per_s}: write a positive rate, in requests per second")
    if (families > 0) != (prefix > 0):
        raise ServingError(f"families = {families} and prefix = {prefix}: write both, or neither")
    chance, now, made = Random(seed), 0.0, []
    for _ in range(requests):
        # An exponential gap, by the inverse of its distribution; 1 - u, as 0 has no logarithm.
        now -= math.log(1 - chance.random()) / rate_per_s
        own, answer = _draw(prompt, chance), _draw(output, chance)
        family = 1 + int(chance.random() * families) if families else 0
        made.append(Request(now, prefix + own, answer, prefix, family, now + patience_s))
    return tuple(made)


def _draw(length: Length, chance: Random) -> int:
    return length if isinstance(length, int) else length(chance)


def trace(rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> tuple[Request, ...]:
    """Requests as they were recorded: rows of (arrival_s, prompt, output, prefix, family, cancel_s).

    The last three may be missing; rows with names, as `csv.DictReader` reads them, may hold more than these.
    """
    return tuple(_request(row) for row in rows)


def _request(row: Mapping[str, Any] | Sequence[Any]) -> Request:
    names = tuple(Request.__dataclass_fields__)
    given = row if isinstance(row, Mapping) else dict(zip(names, row, strict=False))
    missing = [name for name in names[:3] if given.get(name) in (None, "")]
    if missing:
        raise ServingError(f"{row!r} has no {missing[0]}; write (arrival_s, prompt, output, ...)")
    told = {name: given[name] for name in names if given.get(name) not in (None, "")}
    whole = {name: int(value) for name, value in told.items() if name in names[1:5]}
    cancel_s = float(told.get("cancel_s", math.inf))
    return Request(arrival_s=float(told["arrival_s"]), cancel_s=cancel_s, **whole)

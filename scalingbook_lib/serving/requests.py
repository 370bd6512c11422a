"""Inference requests: reproducible random arrivals and lengths, and recorded traces.

Chapter: Inference.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import NormalDist
from typing import Any

from scalingbook_lib.units import Result, count, si

type Length = int | Callable[[Random], int]  # the same length for all, or a sampler


class ServingError(ValueError):
    """An error for an invalid request, policy or cache; the message names the broken rule."""


@dataclass(frozen=True, slots=True)
class Request(Result):
    """One prompt of `prompt` tokens and `output` output tokens, of which the prefill produces the first.

    The first `prefix` tokens of the prompt and the output are shared by all requests of the same `family`, so
    a prefix cache can reuse them. A request still unfinished at `cancel_s` is cancelled at the next step
    boundary. Raises a ServingError for a negative time, an empty prompt or output, or a prefix longer than
    both.
    """

    arrival_s: float
    prompt: int
    output: int
    prefix: int = 0
    family: int = 0
    cancel_s: float = math.inf

    def __post_init__(self) -> None:
        if not (math.isfinite(self.arrival_s) and self.arrival_s >= 0):
            raise ServingError(f"arrival_s = {self.arrival_s}: write a time of at least 0, in seconds")
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
            raise ServingError(f"cancel_s = {self.cancel_s} is before its arrival, {self.arrival_s} s")

    def __str__(self) -> str:
        shared = f", the first {count(self.prefix)} those of family {self.family}" if self.prefix else ""
        return (
            f"at {si(self.arrival_s, 's')}: {count(self.prompt)} tokens in{shared}, {count(self.output)} out"
        )


def uniform(low: int, high: int) -> Callable[[Random], int]:
    """A sampler of lengths from `low` to `high` tokens, each equally likely."""
    if not 1 <= low <= high:
        raise ServingError(f"uniform({low}, {high}): write 1 <= low <= high, in tokens")
    return lambda rng: low + int(rng.random() * (high - low + 1))


def geometric(mean: float) -> Callable[[Random], int]:
    """A sampler of geometric lengths: at least 1 token, `mean` tokens on average.

    Each token ends the output with the same probability, 1/mean.
    """
    if mean < 1:
        raise ServingError(f"geometric({mean}): write a mean of at least 1 token")
    if mean == 1:
        return lambda rng: 1
    scale = math.log1p(-1 / mean)
    # inverse transform sampling: the distribution function is 1 - (1 - 1/mean)^n
    return lambda rng: 1 + int(math.log(1 - rng.random()) / scale)


def lognormal(mean: float, sigma: float = 1.0, max_tokens: int = 2**20) -> Callable[[Random], int]:
    """A sampler of lognormal lengths with mean `mean`; `sigma` is the standard deviation of the logarithm.

    Published traces of prompts and outputs are closer to this than to distributions with a shorter tail.
    Lengths are clipped to [1, `max_tokens`], which lowers the mean if `max_tokens` is close to it.
    """
    if mean < 1 or sigma < 0 or max_tokens < 1:
        raise ServingError(
            f"lognormal({mean}, {sigma}, {max_tokens}): write a mean and a max_tokens of at least 1 token"
        )
    # E[exp(N(m, s²))] = exp(m + s²/2), solved for m
    mu = math.log(mean) - sigma * sigma / 2
    normal = NormalDist()

    def draw(rng: Random) -> int:
        z = normal.inv_cdf(min(max(rng.random(), 1e-12), 1 - 1e-12))  # inv_cdf(0) and inv_cdf(1) are infinite
        return min(max(round(math.exp(mu + sigma * z)), 1), max_tokens)

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
    """Requests of a Poisson process with `rate_per_s` arrivals per second (inf: all arrive at time 0).

    With `families`, each request belongs to a random family and its prompt begins with the `prefix` tokens
    that the family shares, followed by `prompt` tokens of its own. A request is cancelled `patience_s` after
    arrival.
    """
    if not rate_per_s > 0:
        raise ServingError(f"rate_per_s = {rate_per_s}: write a positive rate, in requests per second")
    if (families > 0) != (prefix > 0):
        raise ServingError(f"families = {families} and prefix = {prefix}: write both, or neither")
    rng, now, made = Random(seed), 0.0, []
    for _ in range(requests):
        # An exponential gap by inverse transform sampling; 1 - u is in (0, 1], whose logarithm is finite.
        now -= math.log(1 - rng.random()) / rate_per_s
        own, answer = draw_length(prompt, rng), draw_length(output, rng)
        family = 1 + int(rng.random() * families) if families else 0
        made.append(Request(now, prefix + own, answer, prefix, family, now + patience_s))
    return tuple(made)


def draw_length(length: Length, rng: Random) -> int:
    """A length in tokens: the number given, or one from the sampler given."""
    return length if isinstance(length, int) else length(rng)


def trace(rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> tuple[Request, ...]:
    """Requests from recorded rows of (arrival_s, prompt, output, prefix, family, cancel_s).

    The last three columns are optional. Rows may also be mappings, as `csv.DictReader` reads them; further
    columns are ignored. Raises a ServingError for a row that lacks one of the first three.
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

"""How do a decode step, a cycle of requests and the price of a million tokens come about?"""

from collections.abc import Iterator

from scalingbook_lib.cli.answer import Step as Line
from scalingbook_lib.cli.numbers import added, figure, product
from scalingbook_lib.inference import Memory
from scalingbook_lib.inference.serve import Serving


def steps(one: Serving, memory: Memory, usd: float | None, price: float | None) -> tuple[Line, ...]:
    """The decode step, memory, the cycle, the rate and the price."""
    return (*_step(one), _sum("memory of one chip", memory.terms, memory.total, "B"), *_cycle(one),
            *(_price(one, usd, price) if usd is not None and price is not None else ()))  # fmt: skip


def _step(one: Serving) -> Iterator[Line]:
    yield _sum("T_step", one.step.terms, one.step.total_s, "s")


def _cycle(one: Serving) -> Iterator[Line]:
    where = "between" if one.policy == "interleaved" else "in"
    words = f"{one.G - 1:,} tokens after the first, prompts {where} the steps"
    yield Line(name="T_cycle, in which each slot serves a request", formula="(G − 1) steps and their prompts",
               numbers=words, value=one.cycle_s, unit="s")  # fmt: skip
    yield Line(name="output tokens each second of a copy", formula="B · G / T_cycle",
               numbers=f"{product(one.B, one.G)} / {figure(one.cycle_s)}", value=one.tokens_per_s,
               unit="tokens/s")  # fmt: skip


def _price(one: Serving, usd: float, price: float) -> Iterator[Line]:
    numbers = f"{product(price, one.chips)} / 3600 / {figure(one.tokens_per_s)} · 1e6"
    yield Line(name="USD for a million output tokens", formula="USD/hour · chips / 3600 / (tokens/s) · 1e6",
               numbers=numbers, value=usd, unit="USD")  # fmt: skip


def _sum(name: str, terms: dict[str, float], total: float, unit: str) -> Line:
    numbers = added(map(figure, terms.values()))
    return Line(name=name, formula=" + ".join(terms), numbers=numbers, value=total, unit=unit)

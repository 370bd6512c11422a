"""How do a decode step, a cycle of requests and the price of a million tokens come about?"""

from collections.abc import Iterator

from scalingbook_lib.cli.answer import Line
from scalingbook_lib.cli.numbers import figure, product
from scalingbook_lib.cli.shared import memory_line, sum_line
from scalingbook_lib.inference import Memory
from scalingbook_lib.inference.serve import Serving


def steps(one: Serving, memory: Memory, price: float | None) -> Iterator[Line]:
    """The decode step, memory, the cycle, the rate, and what they cost at a price of a chip-hour."""
    yield sum_line("T_step", one.step.terms, one.step.total_s, "s")
    yield memory_line(memory)
    where = "between" if one.policy == "interleaved" else "in"
    words = f"{one.G - 1:,} tokens after the first, prompts {where} the steps"
    name = "T_cycle, in which each slot serves a request"
    yield Line(name, "(G − 1) steps and their prompts", words, one.cycle_s, "s")
    name, rate = "output tokens each second of a copy", one.tokens_per_s
    numbers = f"{product(one.B, one.G)} / {figure(one.cycle_s)}"
    yield Line(name, "B · G / T_cycle", numbers, rate, "tokens/s")
    if price is not None:
        formula = "USD/hour · chips / 3600 / (tokens/s) · 1e6"
        numbers = f"{product(price, one.chips)} / 3600 / {figure(rate)} · 1e6"
        usd = one.usd_per_million(price)
        yield Line("USD for a million output tokens", formula, numbers, usd, "USD")

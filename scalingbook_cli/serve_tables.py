"""The tables, values and derivation of serving: the Pareto front, one layout, memory and collectives."""

from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_cli import shared
from scalingbook_cli.answer import (
    DerivationLine,
    TextTable,
    fields_of,
    figure,
    name_value_table,
    product,
)
from scalingbook_cli.shared import sum_line
from scalingbook_lib.inference import Serving, ServingMemory
from scalingbook_lib.machines.age import ChipPrice
from scalingbook_lib.planner import Front, Option
from scalingbook_lib.units import count, count_in_words, percent, price, rounded, si


def front(found: Front, most: int) -> TextTable:
    """The Pareto-optimal layouts from the fastest to the cheapest, at most `most` of them."""
    columns = ("layout", "replicas", "batch", "prompts", "TTFT", "ITL", "cost", "bottleneck")
    rows = [_line(found.points[i], found.unit) for i in evenly_spaced(len(found.points), most)]
    shown = f"{len(rows)} of {len(found.points)} options on the Pareto front, fastest to cheapest"
    title = f"{shown} ({found.unit} per million output tokens)"
    return TextTable(title, columns, tuple(rows), words=(0, 3, 7))


def evenly_spaced(n: int, most: int) -> list[int]:
    """`most` of n indices, evenly spaced, including the first and the last."""
    if n <= most:
        return list(range(n))
    return sorted({round(i * (n - 1) / max(most - 1, 1)) for i in range(most)} | {n - 1})[-most:]


def _line(p: Option, unit: str) -> tuple[str, ...]:
    times = (si(p.ttft_s, "s"), si(p.itl_s, "s"))
    cost = price(p.cost) if unit == "USD" else count(p.cost)
    return (
        p.layout.degrees,
        f"{p.copies:,}",
        count(p.sequences),
        p.serving.policy,
        *times,
        cost,
        p.bottleneck,
    )


def front_values(found: Front) -> dict[str, object]:
    """The front as a dictionary, for JSON."""
    return {
        "layouts": found.layouts,
        "layouts_with_batch_size": found.ways,
        "evaluated": found.judged,
        "stopped": found.stopped,
        "cost_unit": found.unit,
        "rejected": shared.rejected_values(found.rejected),
        "front": [
            {
                "layout": shared.way_values(p.layout),
                "replicas": p.copies,
                "batch_size_sequences": p.sequences,
                "policy": p.serving.policy,
                **fields_of(p, "ttft_s", "itl_s"),
                "cost_per_million_tokens": p.cost,
                "bottleneck": p.bottleneck,
            }
            for p in found.points
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the KV cache of a replica holds: tokens, and sequences of the longest context."""

    kv_tokens: int
    longest_tokens: int
    sequences: int
    used: float  # tokens of the load, on average

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The rows of the table of a replica."""
        share = self.used / max(self.kv_tokens, 1)
        return (
            ("KV cache capacity", f"{count_in_words(self.kv_tokens)} tokens"),
            (f"sequences of {self.longest_tokens:,} tokens", self._concurrency),
            ("KV cache in use", f"{count_in_words(rounded(self.used))} tokens ({percent(share)})"),
        )

    @property
    def _concurrency(self) -> str:
        """The sequences of the longest context, with the part of another one that servers print (1.56)."""
        held = self.kv_tokens / self.longest_tokens
        return f"{held:.2f}" if held < 10 else f"{self.sequences:,}"

    @property
    def values(self) -> dict[str, object]:
        """The same for JSON."""
        return {
            "kv_cache_tokens": self.kv_tokens,
            "longest_context_tokens": self.longest_tokens,
            "concurrency_at_longest_context": self.sequences,
        }


def tables(
    one: Serving,
    peak: Serving,
    memory: ServingMemory,
    usd: float | None,
    chip_price: ChipPrice,
    capacity: Capacity,
    told: tuple[tuple[str, str], ...] = (),
) -> tuple[TextTable, ...]:
    """Tables of requests, the step, memory and traffic; the first begins with the rows `told`."""
    at_peak = "total at documented peaks", si(peak.step.total_s, "s")
    step = shared.times("Time of a decode step", one.step.terms, one.step.total_s, at_peak)
    return (
        _requests(one, usd, chip_price, capacity, told),
        step,
        shared.memory(memory, memory.chip),
        *_traffic(one),
    )


def _requests(
    one: Serving,
    usd: float | None,
    chip_price: ChipPrice,
    capacity: Capacity,
    told: tuple[tuple[str, str], ...],
) -> TextTable:
    rows = [
        *told,
        ("decoding sequences", count(one.batch)),
        ("TTFT", si(one.ttft_s, "s")),
        ("ITL", si(one.itl_s, "s")),
        ("request throughput", si(one.requests_per_s, "requests/s")),
        ("output throughput", si(one.tokens_per_s, "tokens/s")),
        ("output throughput per chip", si(one.tokens_per_s_per_chip, "tokens/s")),
        ("fraction of time spent on prefill", percent(one.prefill_share)),
        *capacity.rows,
    ]
    if usd is not None:
        rows += [("USD per million output tokens", price(usd)), ("price of a chip", str(chip_price))]
    if one.joules_per_token is not None:
        rows.append(("energy per output token (chips only)", si(one.joules_per_token, "J")))
    return name_value_table("One replica", rows)


def _traffic(one: Serving) -> tuple[TextTable, ...]:
    rows = []
    for row in one.step.traffic:
        array, took = si(row.nbytes(one.batch, one.batch), "B"), si(one.step.collectives[row.name], "s")
        what = (row.name, row.what, f"{row.n:,}", count(row.times))
        rows.append((*what, array, took, one.step.bound[row.name]))
    columns = ("of", "collective", "chips", "count", "array", "total", "limited by")
    return (TextTable("Collectives of one decode step", columns, tuple(rows), words=(0, 1)),) if rows else ()


def values(one: Serving, memory: ServingMemory, usd: float | None) -> dict[str, object]:
    """The layout as a dictionary, for JSON."""
    return {
        "layout": shared.way_values(one.step.layout),
        "policy": one.policy,
        "batch_size_sequences": one.batch,
        **fields_of(one, "ttft_s", "itl_s", "latency_s", "requests_per_s"),
        "output_tokens_per_s": one.tokens_per_s,
        "output_tokens_per_s_per_chip": one.tokens_per_s_per_chip,
        "prefill_share": one.prefill_share,
        "usd_per_million_output_tokens": usd,
        "chips_joules_per_output_token": one.joules_per_token,
        "decode_step_time_s": one.step.total_s,
        "terms_s": one.step.terms,
        "bottleneck": one.step.bottleneck,
        "remedy": one.step.remedy,
        **shared.memory_values(memory, memory.chip),
        "collectives": [
            {
                "name": row.name,
                "collective": row.what,
                "chips": row.n,
                "count": row.times,
                "array_bytes": row.nbytes(one.batch, one.batch),
                "total_s": one.step.collectives[row.name],
            }
            for row in one.step.traffic
        ],
    }


def derivation(one: Serving, memory: ServingMemory, usd_per_hour: float | None) -> Iterator[DerivationLine]:
    """The lines for the decode step, memory, cycle and rate, and the cost at a price per chip-hour."""
    yield sum_line("T_step", one.step.terms, one.step.total_s, "s")
    yield sum_line("memory per chip", memory.terms, memory.total, "B")
    where = "between" if one.policy == "interleaved" else "within"
    words = f"{one.G - 1:,} tokens after the first, with prompts {where} the steps"
    name = "T_cycle, in which each slot serves one request"
    yield DerivationLine(name, "(G − 1) steps and their prompts", words, one.cycle_s, "s")
    name, rate = "output tokens per second of a replica", one.tokens_per_s
    numbers = f"{product(one.batch, one.G)} / {figure(one.cycle_s)}"
    yield DerivationLine(name, "B · G / T_cycle", numbers, rate, "tokens/s")
    if usd_per_hour is not None:
        formula = "USD/hour · chips / 3600 / (tokens/s) · 1e6"
        numbers = f"{product(usd_per_hour, one.chips)} / 3600 / {figure(rate)} · 1e6"
        usd = one.usd_per_million(usd_per_hour)
        yield DerivationLine("USD per million output tokens", formula, numbers, usd, "USD")

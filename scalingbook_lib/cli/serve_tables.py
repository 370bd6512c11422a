"""What is shown of serving? The front, one way to serve, its step by term, memory and collectives."""

from dataclasses import fields

from scalingbook_lib.cli.answer import Table
from scalingbook_lib.cli.numbers import nbytes
from scalingbook_lib.inference import Layout, Memory
from scalingbook_lib.inference.serve import Serving
from scalingbook_lib.planner import Front, Option
from scalingbook_lib.units import DType, count, percent, si

_WAYS = {"tp": "TP", "rows": "rows", "cp": "CP", "pp": "PP", "ep": "EP", "attention_dp": "attention DP",
         "kv_batch": "KV/sequences", "kv_sequence": "KV/tokens"}  # fmt: skip


def layout_values(layout: Layout) -> dict[str, object]:
    """Every field of the layout, a data type by its name."""
    named = {f.name: getattr(layout, f.name) for f in fields(layout)}
    plain = {name: value.name if isinstance(value, DType) else value for name, value in named.items()}
    return {**plain, "chips": layout.chips}


def front(found: Front, most: int) -> Table:
    """The ways that none beats, from the fastest to the cheapest; of many, `most` of them."""
    columns = ("", "a copy", "copies", "B", "prompts", "TTFT", "ITL", f"{found.unit} for 1M", "binds")
    shown = [found.points[i] for i in spread(len(found.points), most)]
    rows = [_line(found, place, p) for place, p in enumerate(shown, start=1)]
    return Table("None beats these: from the fastest to the cheapest", columns, tuple(rows), words=(1, 4, 8))


def spread(n: int, most: int) -> list[int]:
    """`most` of n places, evenly, the first and the last among them."""
    if n <= most:
        return list(range(n))
    return sorted({round(i * (n - 1) / max(most - 1, 1)) for i in range(most)} | {n - 1})[-most:]


def _line(found: Front, place: int, p: Option) -> tuple[str, ...]:
    ways = [f"{word} {getattr(p.layout, way):,}" for way, word in _WAYS.items() if getattr(p.layout, way) > 1]
    return (
        str(place), ", ".join(ways) or "one chip", f"{p.copies:,}", count(p.B), p.serving.policy,
        si(p.ttft_s, "s"), si(p.itl_s, "s"), count(p.cost), p.binds,
    )  # fmt: skip


def front_values(found: Front) -> dict[str, object]:
    """The same for programs."""
    return {
        "layouts": found.layouts, "judged": found.judged, "cost_unit": found.unit,
        "rejected": [{"kind": r.kind, "count": r.count, "nearest": r.why} for r in found.rejected],
        "front": [
            {"layout": layout_values(p.layout), "copies": p.copies, "sequences": p.B,
             "policy": p.serving.policy, "ttft_s": p.ttft_s, "itl_s": p.itl_s,
             "cost_per_million_tokens": p.cost, "binds": p.binds}
            for p in found.points
        ],
    }  # fmt: skip


def tables(one: Serving, memory: Memory, usd: float | None) -> tuple[Table, ...]:
    """Requests, the step, memory, traffic."""
    return (_requests(one, usd), _times(one), _memory(memory), *_traffic(one))


def _requests(one: Serving, usd: float | None) -> Table:
    rows = [
        ("sequences of a copy", count(one.B)), ("first token", si(one.ttft_s, "s")),
        ("a token of each", si(one.itl_s, "s")), ("requests", si(one.requests_per_s, "requests/s")),
        ("output tokens", si(one.tokens_per_s, "tokens/s")),
        ("of each chip", si(one.tokens_per_s_per_chip, "tokens/s")),
        ("time for prompts", percent(one.prefill_share)),
    ]  # fmt: skip
    if usd is not None:
        rows.append(("USD for a million output tokens", count(usd)))
    return Table("One copy of the model", ("", ""), tuple(rows))


def _times(one: Serving) -> Table:
    rows = [(name, si(seconds, "s")) for name, seconds in one.step.terms.items()]
    rows.append(("the step", si(one.step.total_s, "s")))
    return Table("A decode step", ("term", "time"), tuple(rows))


def _memory(memory: Memory) -> Table:
    rows = [(name, nbytes(held)) for name, held in memory.terms.items()]
    rows += [("all", nbytes(memory.total)), (memory.chip.name, nbytes(memory.chip.hbm_bytes))]
    return Table("Memory of one chip", ("part", "bytes"), tuple(rows))


def _traffic(one: Serving) -> tuple[Table, ...]:
    bound, busy = one.step.bound, one.step.collectives
    rows = tuple(
        (
            row.name, row.what, f"{row.n:,}", count(row.times), si(row.nbytes(one.B, one.B), "B"),
            si(busy[row.name], "s"), bound[row.name],
        )
        for row in one.step.traffic
    )  # fmt: skip
    columns = ("of", "collective", "chips", "times", "array", "all", "longest")
    return (Table("Collectives of one decode step", columns, rows, words=(0, 1)),) if rows else ()


def values(one: Serving, memory: Memory, usd: float | None) -> dict[str, object]:
    """The same for programs."""
    return {
        "layout": layout_values(one.step.layout), "policy": one.policy, "sequences": one.B,
        "ttft_s": one.ttft_s, "itl_s": one.itl_s, "latency_s": one.latency_s,
        "requests_per_s": one.requests_per_s, "output_tokens_per_s": one.tokens_per_s,
        "output_tokens_per_s_per_chip": one.tokens_per_s_per_chip, "prefill_share": one.prefill_share,
        "usd_per_million_output_tokens": usd, "decode_step_s": one.step.total_s,
        "terms_s": one.step.terms, "binds": one.step.binds, "unbind": one.step.unbind,
        "memory_bytes": memory.total, "memory_bytes_by_part": memory.terms,
        "hbm_bytes": memory.chip.hbm_bytes, "fits": memory.fits,
        "traffic": [
            {"name": row.name, "collective": row.what, "chips": row.n, "times": row.times,
             "array_bytes": row.nbytes(one.B, one.B), "total_s": one.step.collectives[row.name]}
            for row in one.step.traffic
        ],
    }  # fmt: skip

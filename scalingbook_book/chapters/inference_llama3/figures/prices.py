"""Figures of the cost of a token: against its latency, and with one part of the machine improved."""

from dataclasses import replace

from scalingbook_book.chapters.inference_llama3.figures.plan import LLAMA, SIXTEEN, B, S, spread
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import inference, planner
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import INT4, INT8, si
from scalingbook_lib.words import join_and

WITHIN = 0.05  # seconds for a token, the service's promise
BETTER = {
    "HBM bandwidth × 2": {"hbm_bytes_per_s": 2 * V5E.hbm_bytes_per_s},
    "HBM size × 2": {"hbm_bytes": 2 * V5E.hbm_bytes},
    "compute × 2": {"bf16_flops_per_s": 2 * V5E.bf16_flops_per_s},
    "link bandwidth × 2": {"link_bytes_per_s": 2 * V5E.link_bytes_per_s},
    "hop latency / 2": {"hop_s": V5E.hop_s / 2},
}
NARROW = {"int4 weights": (INT4, INT8), "int4 cache": (INT8, INT4)}


def front() -> Figure:
    """What does a million tokens cost at each latency?"""
    found = planner.serve(LLAMA, SIXTEEN, P=2048, G=512, fixed={"weights": INT8, "kv": INT8}, reserve=0.1)
    named = (found.fastest, found.within(WITHIN), found.best)
    said = join_and([f"{found.price(p).strip('$ ')} dollars at {si(p.itl_s, 's', 2)}" for p in named])
    return Figure(
        key="inference_llama3.front",
        alt=f"A falling curve of {len(found.points)} points: dollars per million tokens against "
        f"inter-token latency, both axes logarithmic. Three points are labeled: {said}.",
        caption=f"The Pareto front of latency and cost for Llama 3 70B on sixteen TPU v5e chips. Of {found.ways:,} "
        f"layouts and batch sizes, these {len(found.points)} are the best: no other is both faster "
        f"and cheaper. A million tokens cost {said} per token. (Weights and cache in int8, prompts "
        "of 2,048 tokens, answers of 512, peak rates. The time to first token is "
        f"not limited here: at {si(named[1].itl_s, 's', 2)} per token, it is "
        f"{si(named[1].ttft_s, 's')}.)",
        parts=lambda _: [_front(found, named)],
    )


def _front(found: planner.Front, named: tuple[planner.Option, ...]) -> Chart:
    labels = [f"{found.price(p)}, {p.sequences * p.copies:.0f} user{'s' * (p.sequences > 1)}" for p in named]
    return Chart(
        x=Scale("inter-token latency", "ms", "log", low=5, high=200),
        y=Scale("USD per million tokens", "", "log", low=1, high=60),
        marks=(
            Curve("", [1e3 * p.itl_s for p in found.points], [p.cost for p in found.points], color=MEMORY),
            Points("", [1e3 * p.itl_s for p in found.points], [p.cost for p in found.points], color=MEMORY),
            Points(
                "named", [1e3 * p.itl_s for p in named], [p.cost for p in named], labels=labels, color=NETWORK
            ),
        ),
    )


def tornado() -> Figure:
    """Which better component makes the token cheaper?"""
    base = _prices()
    changed = {name: _prices(replace(V5E, **change)) for name, change in BETTER.items()}
    changed |= {name: _prices(weights=w, kv=kv) for name, (w, kv) in NARROW.items()}
    saved = {
        name: [1 - new / old for new, old in zip(costs, base, strict=True)] for name, costs in changed.items()
    }
    order = sorted(saved, key=lambda name: -max(saved[name]))
    said = "; ".join(f"{name} {', '.join(f'{share:.0%}' for share in saved[name])}" for name in order)
    return Figure(
        key="inference_llama3.tornado",
        alt=f"For seven changes, three bars each: the share of the cost of a token that is saved with one user, with {B} users, and with as many as fit. {said}.",
        caption="Reduction of the cost per token by seven changes, at three batch sizes. More memory bandwidth "
        "helps at every batch size, while more compute hardly helps at this context length. Int4 weights "
        "help with few users, and an int4 cache helps with many.",
        parts=lambda wide: [_bars(wide, {name: saved[name] for name in order})],
    )


def _prices(chip=V5E, weights=INT8, kv=INT8) -> list[float]:
    """USD per million tokens for one, for 32, and for all sequences that fit with a tenth of HBM left free."""
    where, how = Slice.of(chip, "4x4"), spread(16, weights, kv)
    full = inference.largest_batch(LLAMA, how, where, S=S, reserve=0.1)
    return [inference.decode(LLAMA, where, how, batch=n, S=S).usd_per_million() for n in (1, B, full)]


def _bars(wide: float, saved: dict[str, list[float]]) -> Sketch:
    left, high = 156.0, 11.0
    unit = (wide - left - 48) / max(max(row) for row in saved.values())
    groups = ((MEMORY, "one user"), (MATH, f"{B} users"), (CACHE, "all that fit"))
    shapes, y = key(wide, 2, dict(groups))
    shapes.append(Words(x=left, y=y + 14, text="cost per token", align="start", quiet=True))
    y += 20
    for name, row in saved.items():
        shapes.append(Words(x=left - 8, y=y + 1.5 * high + 6, text=name, align="end"))
        for k, ((color, _), share) in enumerate(zip(groups, row, strict=True)):
            at = y + 2 + (high + 1) * k
            shapes.append(Area(x=left, y=at, wide=max(share * unit, 1.5), high=high, color=color, shade=0.45))
            if share > 0.004:
                shapes.append(
                    Words(
                        x=left + share * unit + 6, y=at + 10, text=f"−{share:.0%}", align="start", size=11.5
                    )
                )
        y += 3 * high + 15
    return Sketch(wide, y, shapes)

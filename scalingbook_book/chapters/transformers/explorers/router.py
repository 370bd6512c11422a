"""Explorer of expert load: tokens per expert, dropped tokens, and the expert that the step waits for."""

import math

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    Band,
    Chart,
    Chips,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    sig3,
)
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import experts
from scalingbook_lib.units import count, percent, si

_D = 7168  # the width of DeepSeek-V3, for the bytes of the AllToAlls


def _router(*, E: int, k: int, B: int, skew: float, factor: float, chip: str) -> View:
    k = min(k, E)
    even = arithmetic.routing(B, E, k, _D)
    needed = rules.critical_batch(chips.find(chip), sparsity=E / k)
    capacity = factor * even.tokens_per_expert
    visited = experts.routing_probabilities(E, k, skew)
    lost = sum(experts.dropped_tokens(B, chance, capacity) for chance in visited) / (B * k)
    busiest = B * visited[0] / even.tokens_per_expert
    return View(
        _verdict(even.tokens_per_expert, needed.dense_tokens, busiest, lost, chip),
        (_loads(B, visited, even.tokens_per_expert, capacity, needed.dense_tokens),),
        (
            Readout(
                "tokens per expert, on average", even.tokens_per_expert, "", sig3(even.tokens_per_expert, 4)
            ),
            Readout("busiest expert / average", busiest, "", f"{busiest:.3g}"),
            Readout.percent("dropped tokens", lost),
            Readout("critical batch", needed.tokens, "tokens"),
            Readout(
                "AllToAll bytes, forward", 2 * even.dispatch_bytes, "B", si(2 * even.dispatch_bytes, "B")
            ),
            Readout("for D of", _D, "", f"{_D:,}, bf16"),
        ),
    )


def _loads(B: int, visited: tuple[float, ...], even: float, capacity: float, needed: float) -> Chart:
    ranks = list(range(1, len(visited) + 1))
    means = [B * chance for chance in visited]
    spreads = [2 * math.sqrt(B * chance * (1 - chance)) for chance in visited]
    return Chart(
        Scale("experts, busiest first", "", "linear", 1, len(visited)),
        Scale("tokens", "", "linear", 0),
        (
            Band(
                "",
                ranks,
                [max(m - s, 0.0) for m, s in zip(means, spreads, strict=True)],
                [min(m + s, B) for m, s in zip(means, spreads, strict=True)],
                0,
            ),
            Curve("routed tokens", ranks, means, 0),
            RefLine("average", even, "y"),
            RefLine("capacity", capacity, "y"),
            RefLine("critical batch", needed, "y"),
        ),
    )


def _verdict(even: float, needed: float, busiest: float, lost: float, chip: str) -> str:
    tokens = count(round(even)) if even >= 10 else f"{even:.2g}"
    said = (
        f"On average, an expert gets {tokens} tokens, which is "
        f"{'enough' if even >= needed else 'too few'} to be "
    )
    said += f"compute-bound on {chip}, which needs {needed:.0f}. "
    if busiest > 1.05:
        said += f"The busiest expert gets {busiest:.2g} times as many, and all other experts wait for it. "
    dropped = f"{percent(lost)} of the routed tokens" if lost > 1e-4 else "hardly any tokens"
    return f"{said}The capacity limit drops {dropped}."


ROUTER = Explorer(
    key="transformers.router",
    title="Expert load and dropped tokens",
    question="How many tokens does each expert get, and how many are dropped?",
    controls={
        "E": Slider("experts E", 8, 512, 64, "pow2"),
        "k": Slider("experts per token, k", 1, 16, 8),
        "B": Slider("tokens BT", 64, 2**17, 1024, "pow2", "tokens"),
        "skew": Slider("skew of the router", 0.0, 1.5, 0.3, step=0.05),
        "factor": Slider("capacity factor", 1.0, 4.0, 1.25, step=0.05),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
    },
    view=_router,
)

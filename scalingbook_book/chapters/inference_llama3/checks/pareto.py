"""Checks of the last exercises on serving Llama 3: each computes a Pareto front of cost and latency."""

from functools import cache
from typing import Any

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models, planner, rules
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Chip, Cluster, Machine, Slice, chips
from scalingbook_lib.units import INT8

_70B = models.find("Llama 3 70B")
_V5E = chips.V5E
_EVERY = tuple(range(1, 65))
_INT8: dict[str, Any] = {"weights": INT8, "kv": INT8}


type Point = tuple[float, float]  # seconds of a step, USD for a million tokens at 1 USD for a chip-hour


@cache
def _points(machine: Machine) -> tuple[Point, ...]:
    n = machine.chips
    layout = Layout(tp=n, kv_batch=max(n // 8, 1), **_INT8)
    most = inference.largest_batch(_70B, layout, machine, S=8192)
    steps = (inference.decode(_70B, machine, layout, batch=B, S=8192) for B in range(1, most + 1))
    return tuple((step.total_s, step.usd_per_million(1.0)) for step in steps)


def _tpus() -> list[Point]:
    slices = (Slice.of(_V5E, shape) for shape in ("2x4", "4x4", "4x8"))
    return [(s, 1.2 * usd) for machine in slices for s, usd in _points(machine)]


def _gpus(usd_per_hour: float) -> list[Point]:
    nodes = (Cluster.of(chips.H100, n) for n in (2, 4, 8))
    return [(s, usd_per_hour * usd) for machine in nodes for s, usd in _points(machine)]


def _front(points: list[Point]) -> list[Point]:
    found: list[Point] = []
    for one in sorted(points):
        if not found or one[1] < found[-1][1]:
            found.append(one)
    return found


@cache
def _price() -> float:
    """Highest USD per H100-hour at which no point of a v5e slice is on the joint front, by bisection."""
    low, high, tpus = 0.1, 100.0, _front(_tpus())
    for _ in range(40):
        price = (low * high) ** 0.5
        left = set(_front(_gpus(price) + tpus)) & set(tpus)
        low, high = (low, price) if left else (price, high)
    return high


@cache
def _cheapest(itl_s: float | None = 0.02, **how: Any) -> float:
    """USD per million output tokens, prompts included, by the planner."""
    machines = tuple(Slice.of(_V5E, shape) for shape in ("2x4", "4x4"))
    fixed = {**_INT8, "pp": 1, "rows": 1, "attention_dp": 1, "kv_sequence": 1}
    front = planner.serve(_70B, machines, P=2048, G=512, fixed=fixed, itl_s=itl_s, ttft_s=1.0, **how)
    return front.best.cost


def _by_rule() -> float:
    """The price of an H100 at which, by the rule, a full node costs what a full slice does."""
    cached = inference.crossover_batch(_70B, S=8192, kv=INT8).cache_bytes

    def cost(chip: Chip, n: int, usd: float) -> float:
        B = int((n * chip.hbm_bytes - _70B.params) // cached)
        step = rules.decode_step(_70B.params, chip, n, batch=B, cache_bytes=cached, weights=INT8)
        return step.usd_per_million(usd)

    return cost(_V5E, 32, 1.2) / cost(chips.H100, 8, 1.0)


FRONTS = (
    Check(
        key="inference_llama3.price-on-front",
        title="At what price does the H100 displace the v5e?",
        answer=_price,
        unit="USD",
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "Compute all points once, at a price of 1 per chip-hour. A price multiplies their costs.",
            (
                "Sort the points by step time and keep each one that is cheaper than all before it; "
                "then look for a v5e among them."
            ),
            "Bisect the interval of prices until it is narrow enough.",
        ),
        mistakes=(
            Mistake(
                _by_rule,
                "That is by the rule, which leaves out the network. Slices of v5e lose more time "
                "to communication.",
            ),
            Mistake(8.0, "That is the price of all eight. The question is about one GPU."),
        ),
    ),
    Check(
        key="inference_llama3.two-targets",
        title="The cheapest service within two latency targets",
        answer=lambda: _cheapest(batches=_EVERY),
        unit="USD",
        difficulty=3,
        hints=(
            (
                "`planner.serve` takes machines, targets, fixed fields of the layout, and the batch "
                "sizes to try."
            ),
            "`.best` is the cheapest option that meets both targets, and `.cost` is its price.",
        ),
        mistakes=(
            Mistake(
                _cheapest, "The planner's default batch sizes leave gaps. Let it try each one from 1 to 64."
            ),
            Mistake(
                lambda: _cheapest(None, batches=_EVERY),
                "At that price, no layout delivers a token within 20 ms.",
            ),
            Mistake(
                lambda: _cheapest(policies=("interleaved",), batches=_EVERY),
                "Chunked prefill is allowed, too.",
            ),
        ),
    ),
)

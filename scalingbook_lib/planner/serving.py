"""How should a model be served: on which chips, spread how, how many sequences at once?

Every layout that a machine allows is judged with batches from one sequence to all that fit, at the steady
state of `inference.serve`; latency and cost pull apart, so the answer is a front. Chapter: Serving LLaMA 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from scalingbook_lib import inference
from scalingbook_lib.inference import PEAK, POLICIES, Efficiency, Layout, LayoutError, Serving
from scalingbook_lib.inference import serve as steady
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.front import HOURS, USD, Front, Option, pareto
from scalingbook_lib.planner.spread import divisors, tried_ways
from scalingbook_lib.planner.tally import Tally

WAYS = ("tp", "cp", "pp", "rows", "ep", "attention_dp", "kv_batch", "kv_sequence")


def serve(
    model: Transformer,
    machines: Machine | tuple[Machine, ...],
    *,
    P: int,
    G: int,
    fixed: dict[str, Any] | None = None,
    tried: dict[str, tuple[Any, ...]] | None = None,
    batches: tuple[int, ...] | None = None,
    ttft_s: float | None = None,
    itl_s: float | None = None,
    usd_per_hour: float | None = None,
    policies: tuple[str, ...] = POLICIES,
    chunk: int = 512,
    reserve: float = 0.0,
    efficiency: Efficiency = PEAK,
) -> Front:
    """The ways to serve requests of P prompt and G output tokens that none beats in latency and cost.

    `machines`: one or several, as all sizes of a slice; copies of the model fill each. `fixed`: fields of
    `inference.Layout` with the one value they may have, `fixed=dict(weights=INT8, pp=1)`; `tried`: the values
    to try for a field, else all divisors of what there is. `batches`: sequences of a copy, else 1, 2, 3, 4,
    6, 8, 12, ... and the most that fit. Options later than `ttft_s` or `itl_s` are left out. Costs are USD
    where every machine has a price (or `usd_per_hour` of one chip is given), else chip-hours. ValueError:
    machines of different chips of which one has no price.
    """
    asked = machines if isinstance(machines, tuple) else (machines,)
    known: dict[str, Any] = {"fixed": fixed or {}, "tried": tried or {}, "chunk": chunk, "reserve": reserve}
    search = _Search(model=model, P=P, G=G, policies=policies, efficiency=efficiency, **known)
    unit, prices = _prices(asked, usd_per_hour)
    options = [
        Option(s.itl_s, prices[i] * s.chips / 3600 / s.tokens_per_s * 1e6, s.ttft_s, s, machine)
        for i, machine in enumerate(asked)
        for s in search.on(machine, batches)
    ]
    targets = {name: s for name, s in (("ttft_s", ttft_s), ("itl_s", itl_s)) if s is not None}
    return search.front(asked, unit, targets, options, known)


def _prices(machines: tuple[Machine, ...], given: float | None) -> tuple[str, list[float]]:
    """Of a chip-hour, one for each machine."""
    found = [m.chip.usd_per_hour if given is None else given for m in machines]
    if all(p is not None for p in found):
        return USD, [p for p in found if p is not None]
    if len({m.chip for m in machines}) > 1:
        bare = sorted({m.chip.name for m, p in zip(machines, found, strict=True) if p is None})
        raise ValueError(
            f"{', '.join(bare)}: no price, and different chips cannot be compared without; "
            "give usd_per_hour=... or machines of one chip"
        )
    return HOURS, [1.0] * len(machines)


@dataclass(kw_only=True, slots=True)
class _Search:
    """One run over machines: layouts, batches, counts."""

    model: Transformer
    P: int
    G: int
    fixed: dict[str, Any]
    tried: dict[str, tuple[Any, ...]]
    policies: tuple[str, ...]
    chunk: int
    reserve: float
    efficiency: Efficiency
    layouts: int = 0
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.tried = self.tried | {name: (self.fixed[name],) for name in WAYS if name in self.fixed}

    def front(
        self,
        machines: tuple[Machine, ...],
        unit: str,
        targets: dict[str, float],
        options: list[Option],
        known: dict[str, Any],
    ) -> Front:
        """Of what was found, that which meets the targets and is not beaten."""
        kept = [o for o in options if all(getattr(o, name) <= s for name, s in targets.items())]
        if late := len(options) - len(kept):  # what is legal and too slow is counted, and the nearest told
            over = {id(o): max(getattr(o, n) / s for n, s in targets.items()) for o in options}
            near = min((o for o in options if over[id(o)] > 1), key=lambda o: over[id(o)])
            self.tally.refuse("latency", late, str(near.serving))
        return Front(
            model=self.model,
            machines=machines,
            P=self.P,
            G=self.G,
            unit=unit,
            targets=targets,
            points=pareto(kept),
            layouts=self.layouts,
            options=tuple(options),
            rejected=self.tally.rejected,
            known=known,
        )

    def on(self, machine: Machine, batches: tuple[int, ...] | None) -> Iterator[Serving]:
        """Every way to serve on this machine."""
        constant = {name: value for name, value in self.fixed.items() if name not in WAYS}
        for ways in self.spreads(machine.chips):
            self.layouts += 1
            try:
                layout = Layout(**ways, **constant)
                inference.case(self.model, machine, layout, self.efficiency)
            except LayoutError as refused:
                self.tally.refuse("the model's sizes", 1, str(refused))
                continue
            yield from self._served(machine, layout, batches)

    def _served(self, machine: Machine, layout: Layout, batches: tuple[int, ...] | None) -> Iterator[Serving]:
        """All batches and policies of one layout."""
        tokens = {"interleaved": None, "chunked": self.chunk}
        S = ceil(self.P + self.G / 2)
        for policy in self.policies:
            room = {"S": S, "reserve": self.reserve, "step_tokens": tokens[policy]}
            most = inference.largest_batch(self.model, layout, machine, **room)
            if not most:
                held = inference.memory(self.model, layout, machine, B=1, S=S, reserve=self.reserve)
                if self.tally.counts("memory", 1, held.total):
                    self.tally.nearest("memory", f"{layout}: {held}", None, held.total)
            for B in sizes(most) if batches is None else (b for b in batches if b <= most):
                asked = {"P": self.P, "G": self.G, "batch": B, "chunk": self.chunk}
                yield steady(self.model, machine, layout, **asked, policy=policy, efficiency=self.efficiency)

    def spreads(self, chips: int) -> Iterator[dict[str, int]]:
        """Ways of a layout: divisors of what is left; context ways for prompts only where they are asked for.

        Heads of the cache are split before they are copied.
        """
        for tp, cp, pp in self._chips(chips):
            for dp in tried_ways(self.tried, "attention_dp", tp):
                for kv_batch, kv_sequence in self._cache(tp // dp):
                    for rows in tried_ways(self.tried, "rows", tp if dp == 1 else 1):
                        for ep in tried_ways(
                            self.tried,
                            "ep",
                            tp if (self.model.experts or "ep" in self.tried) and rows == 1 else 1,
                        ):
                            ways = (tp, cp, pp, rows, ep, dp, kv_batch, kv_sequence)
                            yield dict(zip(WAYS, ways, strict=True))

    def _chips(self, chips: int) -> Iterator[tuple[int, int, int]]:
        """Those of a copy: tensor, context and pipeline ways whose product divides the machine's."""
        for tp in tried_ways(self.tried, "tp", chips):
            for cp in tried_ways(self.tried, "cp", chips // tp) if "cp" in self.tried else (1,):
                for pp in tried_ways(self.tried, "pp", chips // tp // cp):
                    yield tp, cp, pp

    def _cache(self, group: int) -> Iterator[tuple[int, int]]:
        """What heads cannot split goes to sequences or to tokens."""
        for heads in divisors(group):
            rest = group // heads
            for both in dict.fromkeys(((rest, 1), (1, rest))):
                fits = (
                    heads <= max(self.model.K, 1) or "kv_batch" in self.tried or "kv_sequence" in self.tried
                )
                named = zip(("kv_batch", "kv_sequence"), both, strict=True)
                if fits and all(n in tried_ways(self.tried, name, rest) for name, n in named):
                    yield both


def sizes(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, ... and the most."""
    found = {n for k in range(most.bit_length()) for n in (1 << k, 3 << k >> 1) if 0 < n <= most}
    return sorted(found | ({most} if most else set()))

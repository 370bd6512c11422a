"""How should a model be served, how fast is it, and what does a million tokens cost? `scalingbook serve`."""

from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any

import click

from scalingbook_lib import inference, planner
from scalingbook_lib.cli import kinds, serve_tables, shared
from scalingbook_lib.cli.answer import Answer, Table, answering
from scalingbook_lib.cli.kinds import given, layout_options
from scalingbook_lib.cli.progress import Progress, progressing
from scalingbook_lib.cli.reading import CALIBRATED
from scalingbook_lib.evidence import inference as published
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from scalingbook_lib.inference import PEAK, POLICIES, Efficiency, Layout, Serving
from scalingbook_lib.inference import serve as steady
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.age import ChipPrice, price_of
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner import Front
from scalingbook_lib.planner.watch import Watch, unwatched
from scalingbook_lib.units import BF16, DType, percent, si


@click.command(
    "serve", short_help="The ways to serve a model that none beats in latency and cost, or any one."
)
@click.argument("model", type=kinds.MODEL)
@click.argument("machine", type=kinds.MACHINE)
@kinds.defaulted("--prompt P", kinds.WHOLE, "1024", "Tokens of a prompt.")
@kinds.defaulted("--output G", kinds.WHOLE, "512", "Tokens generated.")
@click.option(
    "--batch", type=kinds.WHOLE, help="Sequences of a copy that decode at once; else all are tried."
)
@click.option(
    "--as-written", is_flag=True, help="Judge the one layout of the options; ways not written are 1."
)
@click.option("--itl", "itl_s", type=kinds.SECONDS, help="The most time between two tokens, as in 50ms.")
@click.option("--ttft", "ttft_s", type=kinds.SECONDS, help="The most time to the first token, as in 2s.")
@kinds.defaulted("--best keep", kinds.FEW, "8", "How many are listed.")
@click.option(
    "--policy", type=click.Choice(POLICIES), help="Prompts between decode steps, or in chunks with them."
)
@kinds.defaulted("--chunk", kinds.WHOLE, "512", "Most prompt tokens of a step.")
@kinds.defaulted("--reserve", kinds.SHARE, "10%", "Share of the HBM kept free.")
@kinds.defaulted("--efficiency", kinds.REACHED, CALIBRATED, "peak, calibrated, or a record of `measure`.")
@layout_options
@click.option("--usd-per-hour", type=kinds.POSITIVE, help="The price of one chip, where not the catalogue's.")
@progressing
@answering
def command(
    *,
    as_written: bool,
    itl_s: float | None,
    ttft_s: float | None,
    keep: int,
    progress: bool,
    **options: Any,
) -> Answer:
    """The ways to serve MODEL on MACHINE that none beats: latency against the cost of a million tokens.

    Every layout is searched with batches from one sequence to all that fit, with requests that never run
    out; an option leaves only the ways that are like it. With --as-written, the one
    layout that the options say. The chips of the machine are copies of the model, tp · cp · pp chips each.
    Where nothing is legal, the reasons are told and the exit code is 1.
    """
    asked = Asked(**{f.name: options.pop(f.name) for f in fields(Asked)})
    if not as_written:
        with Progress(_far, always=progress) as watch:
            found = asked.front(given(options), ttft_s=ttft_s, itl_s=itl_s, watch=watch)
        return asked.best(found, keep)
    if itl_s or ttft_s:
        raise ValueError("--itl and --ttft choose among many ways, and --as-written is one; leave them out")
    return asked.one(Layout(**given(options)))


def _far(done: int, of: int) -> str:
    return f"{done:,} of {of:,} layouts searched" if of else f"{done:,} layouts found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question without the layout."""

    model: Transformer
    machine: Machine
    P: int
    G: int
    batch: int | None
    policy: str | None
    chunk: int
    reserve: float
    usd_per_hour: float | None
    efficiency: str | DeviceBenchmark

    def reached(self, compute: DType) -> Efficiency:
        """The efficiency that is meant, of products in that type."""
        if isinstance(self.efficiency, DeviceBenchmark):
            return self.efficiency.serving(self.machine.chip, compute)
        return PEAK if self.efficiency == PEAK.name else published.calibrated(self.machine.chip, compute)

    @property
    def near(self) -> float | None:
        """The factor that predictions were off at most, for most; None at the peak."""
        if self.efficiency == PEAK.name:
            return None
        return published.prediction_interval(experts=self.model.experts is not None)

    @property
    def values(self) -> dict[str, Any]:
        """The question, for programs."""
        return {
            "model": self.model.name,
            "machine": self.machine.name,
            "prompt_tokens": self.P,
            "output_tokens": self.G,
            "usd_per_chip_hour": self.price.usd_per_hour,
            "usd_as_of": self.price.as_of,
            "efficiency": str(self.efficiency),
            "within_factor": self.near,
        }

    @property
    def price(self) -> ChipPrice:
        """Of one chip-hour."""
        return price_of(self.machine.chip, self.usd_per_hour)

    @property
    def held(self) -> dict[str, Any]:
        """What memory is reckoned with: sequences that are half generated, and the share kept free."""
        return {"S": ceil(self.P + self.G / 2), "reserve": self.reserve}

    def one(self, layout: Layout) -> Answer:
        """One layout, with the batch that was asked or all that fits."""
        most = inference.largest_batch(self.model, layout, self.machine, **self.held)
        if most < (self.batch or 1):
            held = inference.memory(self.model, layout, self.machine, B=self.batch or 1, **self.held)
            values = {"feasible": False, "reasons": [str(held)], "layout": shared.way_values(layout)}
            return Answer(told=f"{layout}: {held}", values=self.values | values, refused=True)
        served = self._steady(layout, self.batch or most, self.policy or POLICIES[0])
        return self._answer(str(served), served, (), {})

    def _steady(self, layout: Layout, batch: int, policy: str) -> Serving:
        """That layout with so many sequences, as requests never run out."""
        return steady(
            self.model,
            self.machine,
            layout,
            P=self.P,
            G=self.G,
            chunk=self.chunk,
            batch=batch,
            policy=policy,
            efficiency=self.reached(layout.compute),
        )

    def front(
        self,
        fixed: dict[str, Any],
        *,
        ttft_s: float | None = None,
        itl_s: float | None = None,
        watch: Watch = unwatched,
    ) -> Front:
        """The front of all layouts with these fields."""
        return planner.serve(
            self.model,
            self.machine,
            P=self.P,
            G=self.G,
            chunk=self.chunk,
            fixed=fixed,
            ttft_s=ttft_s,
            itl_s=itl_s,
            batches=(self.batch,) if self.batch else None,
            usd_per_hour=self.usd_per_hour,
            policies=(self.policy,) if self.policy else POLICIES,
            reserve=self.reserve,
            efficiency=self.reached(fixed.get("compute", BF16)),
            watch=watch,
        )

    def best(self, found: Front, keep: int) -> Answer:
        """What there is to say of a front, and of its cheapest point."""
        values = {"search": serve_tables.front_values(found)}
        if not found.points:
            told = {"feasible": False, "reasons": [str(r) for r in found.rejected]}
            return Answer(told=str(found), values=self.values | told | values, refused=True)
        return self._answer(str(found), found.best.serving, (serve_tables.front(found, keep),), values)

    def _answer(self, told: str, one: Serving, listed: tuple[Table, ...], values: dict[str, Any]) -> Answer:
        peak = replace(self, efficiency=PEAK.name)._steady(one.step.layout, int(one.slots), one.policy)
        held = inference.memory(self.model, one.step.layout, self.machine, B=int(one.slots), **self.held)
        price = self.price.usd_per_hour
        usd = None if price is None else one.usd_per_million(price)
        if self.near is not None:  # published runs say how far predictions were off
            told += (
                f"\n{percent(published.COVERAGE)} of published runs are within a factor of {self.near:.3g} "
                f"of their predictions\na copy makes {si(one.tokens_per_s, 'tokens/s')}, at documented peaks "
                f"{si(peak.tokens_per_s, 'tokens/s')}"
            )
        return Answer(
            told=told,
            tables=(*listed, *serve_tables.tables(one, held, usd, self.price)),
            values=self.values
            | {"feasible": True}
            | values
            | {"peak_output_tokens_per_s": peak.tokens_per_s, "peak_itl_s": peak.itl_s}
            | serve_tables.values(one, held, usd),
            steps=tuple(serve_tables.derivation(one, held, price)),
        )

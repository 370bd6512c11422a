"""The command `scalingbook serve`: layouts to serve a model, their latency, and cost per million tokens."""

from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any

import click

from scalingbook_cli import parameter_types, serve_tables, shared
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_cli.parameter_types import layout_options, written_fields
from scalingbook_cli.progress import Progress, progress_option
from scalingbook_cli.reading import CALIBRATED
from scalingbook_lib import calibrated, inference, planner
from scalingbook_lib.calibrated import bands
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from scalingbook_lib.inference import PEAK, POLICIES, Layout, Serving, ServingEfficiency
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
@click.argument("model", type=parameter_types.MODEL)
@click.argument("machine", type=parameter_types.MACHINE)
@parameter_types.option_with_default("--prompt P", parameter_types.WHOLE, "1024", "Tokens of a prompt.")
@parameter_types.option_with_default("--output G", parameter_types.WHOLE, "512", "Tokens generated.")
@click.option(
    "--batch", type=parameter_types.WHOLE, help="Sequences of a copy that decode at once; else all are tried."
)
@click.option(
    "--as-written", is_flag=True, help="Judge the one layout of the options; ways not written are 1."
)
@click.option(
    "--itl", "itl_s", type=parameter_types.SECONDS, help="The most time between two tokens, as in 50ms."
)
@click.option(
    "--ttft", "ttft_s", type=parameter_types.SECONDS, help="The most time to the first token, as in 2s."
)
@parameter_types.option_with_default("--best keep", parameter_types.LIST_LENGTH, "8", "How many are listed.")
@click.option(
    "--policy", type=click.Choice(POLICIES), help="Prompts between decode steps, or in chunks with them."
)
@parameter_types.option_with_default("--chunk", parameter_types.WHOLE, "512", "Most prompt tokens of a step.")
@parameter_types.option_with_default("--reserve", parameter_types.SHARE, "10%", "Share of the HBM kept free.")
@parameter_types.option_with_default(
    "--efficiency",
    parameter_types.SERVING_EFFICIENCY,
    CALIBRATED,
    "peak, calibrated, or a record of `measure`.",
)
@layout_options
@click.option(
    "--usd-per-hour", type=parameter_types.POSITIVE, help="The price of one chip, where not the catalogue's."
)
@progress_option
@answer_command
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
    asked = ServeRequest(**{f.name: options.pop(f.name) for f in fields(ServeRequest)})
    if not as_written:
        with Progress(_progress_text, always=progress) as watch:
            found = asked.front(written_fields(options), ttft_s=ttft_s, itl_s=itl_s, watch=watch)
        return asked.best(found, keep)
    if itl_s or ttft_s:
        raise ValueError("--itl and --ttft choose among many ways, and --as-written is one; leave them out")
    return asked.one(Layout(**written_fields(options)))


def _progress_text(done: int, of: int) -> str:
    return f"{done:,} of {of:,} layouts searched" if of else f"{done:,} layouts found"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeRequest:
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

    def efficiency_for(self, compute: DType) -> ServingEfficiency:
        """The efficiency for matmuls in that dtype."""
        if isinstance(self.efficiency, DeviceBenchmark):
            return self.efficiency.serving(self.machine.chip, compute)
        return PEAK if self.efficiency == PEAK.name else calibrated.serving(self.machine.chip, compute)

    @property
    def interval_factor(self) -> float | None:
        """The factor of the prediction interval, or None at documented peaks."""
        if self.efficiency == PEAK.name:
            return None
        return bands.serving_band(experts=self.model.experts is not None).widened(
            bands.chip_doubts("inference", self.machine.chip, BF16)
        )

    @property
    def values(self) -> dict[str, Any]:
        """The question as a dictionary, for JSON."""
        return {
            "model": self.model.name,
            "machine": self.machine.name,
            "prompt_tokens": self.P,
            "output_tokens": self.G,
            "usd_per_chip_hour": self.price.usd_per_hour,
            "usd_as_of": self.price.as_of,
            "efficiency": str(self.efficiency),
            "within_factor": self.interval_factor,
        }

    @property
    def price(self) -> ChipPrice:
        """The price of one chip-hour."""
        return price_of(self.machine.chip, self.usd_per_hour)

    @property
    def memory_arguments(self) -> dict[str, Any]:
        """The arguments for memory: half-generated sequences, and the reserved share."""
        return {"S": ceil(self.P + self.G / 2), "reserve": self.reserve}

    def one(self, layout: Layout) -> Answer:
        """The answer for one layout, with the given batch or the largest that fits."""
        most = inference.largest_batch(self.model, layout, self.machine, **self.memory_arguments)
        if most < (self.batch or 1):
            held = inference.memory(
                self.model, layout, self.machine, batch=self.batch or 1, **self.memory_arguments
            )
            values = {"feasible": False, "reasons": [str(held)], "layout": shared.way_values(layout)}
            return Answer(summary=f"{layout}: {held}", values=self.values | values, refused=True)
        served = self._steady(layout, self.batch or most, self.policy or POLICIES[0])
        return self._answer(str(served), served, (), {})

    def _steady(self, layout: Layout, batch: int, policy: str) -> Serving:
        """The steady state of a layout with that many sequences."""
        return steady(
            self.model,
            self.machine,
            layout,
            P=self.P,
            G=self.G,
            chunk=self.chunk,
            batch=batch,
            policy=policy,
            efficiency=self.efficiency_for(layout.compute),
        )

    def front(
        self,
        fixed: dict[str, Any],
        *,
        ttft_s: float | None = None,
        itl_s: float | None = None,
        watch: Watch = unwatched,
    ) -> Front:
        """The Pareto front of all layouts with these fields."""
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
            efficiency=self.efficiency_for(fixed.get("compute", BF16)),
            watch=watch,
        )

    def best(self, found: Front, keep: int) -> Answer:
        """The answer for a front: its points, and its cheapest one in detail."""
        values = {"search": serve_tables.front_values(found)}
        if not found.points:
            told = {"feasible": False, "reasons": [str(r) for r in found.rejected]}
            return Answer(summary=str(found), values=self.values | told | values, refused=True)
        return self._answer(str(found), found.best.serving, (serve_tables.front(found, keep),), values)

    def _answer(
        self, told: str, one: Serving, listed: tuple[TextTable, ...], values: dict[str, Any]
    ) -> Answer:
        peak = replace(self, efficiency=PEAK.name)._steady(one.step.layout, int(one.slots), one.policy)
        held = inference.memory(
            self.model, one.step.layout, self.machine, batch=int(one.slots), **self.memory_arguments
        )
        price = self.price.usd_per_hour
        usd = None if price is None else one.usd_per_million(price)
        if self.interval_factor is not None:  # calibrated against published runs
            told += (
                f"\n{percent(bands.COVERAGE)} of published runs are within a factor of "
                f"{self.interval_factor:.3g} "
                f"of their predictions\na copy makes {si(one.tokens_per_s, 'tokens/s')}, at documented peaks "
                f"{si(peak.tokens_per_s, 'tokens/s')}"
            )
        return Answer(
            summary=told,
            tables=(*listed, *serve_tables.tables(one, held, usd, self.price)),
            values=self.values
            | {"feasible": True}
            | values
            | {"peak_output_tokens_per_s": peak.tokens_per_s, "peak_itl_s": peak.itl_s}
            | serve_tables.values(one, held, usd),
            steps=tuple(serve_tables.derivation(one, held, price)),
        )

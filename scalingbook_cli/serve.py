"""The command `scalingbook serve`: layouts to serve a model, their latency, and cost per million tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any

import click

from scalingbook_cli import launch_tables, parameter_types, serve_tables, shared
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_cli.parameter_types import layout_options, written_fields
from scalingbook_cli.progress import Progress, progress_option
from scalingbook_cli.reading import CALIBRATED
from scalingbook_lib import calibrated, inference, planner
from scalingbook_lib.calibrated import short_answer
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from scalingbook_lib.inference import PEAK, POLICIES, Layout, Serving, ServingEfficiency
from scalingbook_lib.inference import serve as steady
from scalingbook_lib.inference.vllm_defaults import default_batched_tokens
from scalingbook_lib.launch import emit as launch_commands
from scalingbook_lib.launch.serving import HEAD, Draft
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.age import ChipPrice, price_of
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.quantization import serving_types
from scalingbook_lib.models.quantized import named_format
from scalingbook_lib.planner import Front
from scalingbook_lib.planner.watch import Watch, unwatched
from scalingbook_lib.planner.ways import sizes
from scalingbook_lib.units import BF16, FP8, DType


@click.command(
    "serve", short_help="The best layouts to serve a model by latency and cost, or a given layout."
)
@click.argument("model", type=parameter_types.MODEL)
@click.argument("machine", type=parameter_types.MACHINE)
@parameter_types.option_with_default("--prompt P", parameter_types.WHOLE, "1024", "Prompt length in tokens.")
@parameter_types.option_with_default("--output G", parameter_types.WHOLE, "512", "Output length in tokens.")
@click.option(
    "--batch",
    type=parameter_types.WHOLE,
    help="Batch size: sequences that a replica decodes at once. All sizes are tried by default.",
)
@click.option(
    "--as-written", is_flag=True, help="Time only the layout given by the options; degrees not given are 1."
)
@click.option(
    "--itl", "itl_s", type=parameter_types.SECONDS, help="The largest inter-token latency (ITL), as in 50ms."
)
@click.option(
    "--ttft", "ttft_s", type=parameter_types.SECONDS, help="The largest time to first token (TTFT), as in 2s."
)
@parameter_types.option_with_default(
    "--best keep", parameter_types.LIST_LENGTH, "8", "Number of options to list."
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    help="Process prompts between decode steps, or in chunks with them.",
)
@click.option(
    "--max-num-batched-tokens",
    "--chunk",
    "chunk",
    type=parameter_types.WHOLE,
    help="Largest number of prompt tokens in a step. The default is vLLM's for the chip.",
)
@click.option(
    "--max-num-seqs", type=parameter_types.WHOLE, help="Largest batch size of a replica; a cap, not the load."
)
@click.option(
    "--max-model-len",
    type=parameter_types.TOKENS,
    help="Longest context in tokens; a cap, not the load. It must hold the prompt and the output.",
)
@click.option(
    "--gpu-memory-utilization",
    type=parameter_types.SHARE,
    help="Share of the HBM that the engine uses; the same as --reserve with the rest.",
)
@click.option(
    "--prefix-cache-hit",
    type=parameter_types.SHARE,
    default="0",
    help="Share of the prompt tokens that are in the prefix cache.",
)
@click.option(
    "--draft-tokens",
    type=parameter_types.WHOLE,
    help="Drafted tokens that a decode step verifies (speculative decoding); needs --acceptance-length.",
)
@click.option(
    "--acceptance-length",
    type=parameter_types.POSITIVE,
    help="Mean tokens per decode step with drafts, including the model's own: 1 to --draft-tokens + 1.",
)
@click.option(
    "--draft-model",
    type=parameter_types.MODEL,
    help="The draft model. Without it, the draft is a head of one layer (MTP, EAGLE).",
)
@click.option(
    "--reserve", type=parameter_types.SHARE, help="Share of the HBM that is kept free.  [default: 10%]"
)
@parameter_types.option_with_default(
    "--efficiency",
    parameter_types.SERVING_EFFICIENCY,
    CALIBRATED,
    "peak, calibrated, or a record of `measure`.",
)
@layout_options
@click.option(
    "--emit",
    type=click.Choice(tuple(launch_commands.SERVING)),
    help="Search the layouts that this server can express, and print its launch command.",
)
@parameter_types.expert_skew_option
@click.option(
    "--usd-per-hour",
    type=parameter_types.POSITIVE,
    help="Price per chip-hour in USD, instead of the catalog's.",
)
@progress_option
@parameter_types.chip_options
@answer_command
def command(
    *,
    as_written: bool,
    itl_s: float | None,
    ttft_s: float | None,
    keep: int,
    emit: str | None,
    progress: bool,
    **options: Any,
) -> Answer:
    """Find the best ways to serve MODEL on MACHINE: latency against the cost of a million tokens.

    The search covers every layout, with batch sizes from one sequence to all that fit, under a load of
    requests that never ends; an option fixes a field of the layout. With --as-written, the options are the
    whole layout. The machine holds replicas of the model, each on tp · cp · pp chips. If no layout is
    possible, the command prints the reasons, and the exit code is 1.
    """
    asked = ServeRequest.of(options)
    question = {f.name for f in fields(ServeRequest)}
    options = {name: value for name, value in options.items() if name not in question}
    fixed = asked.with_stored(written_fields(options, asked.machine.chip))
    name = parameter_types.checkpoint(click.get_current_context(), asked.model)
    if emit:
        fixed = _expressed(emit, fixed)
    if not as_written:
        with Progress(_progress_text, always=progress) as watch:
            found = asked.front(fixed, ttft_s=ttft_s, itl_s=itl_s, watch=watch)
        return asked.emitted(found, keep, emit, name) if emit else asked.best(found, keep)
    if itl_s or ttft_s:
        raise ValueError("--itl and --ttft choose among layouts, and --as-written gives one; leave them out")
    layout = Layout(**fixed)
    return asked.written(layout, emit, name) if emit else asked.one(layout)


def _progress_text(done: int, of: int) -> str:
    return f"{done:,} of {of:,} layouts searched" if of else f"{done:,} layouts found"


def _with_command(answer: Answer, command: launch_commands.Emission) -> Answer:
    """The answer with a launch command before its tables."""
    return replace(
        answer,
        tables=(*launch_tables.emitted(command), *answer.tables),
        values={**answer.values, **launch_tables.emitted_values(command)},
    )


def _expressed(launcher: str, fixed: dict[str, Any]) -> dict[str, Any]:
    """The fields, and those that every command of a server has; fp8 weights are multiplied in fp8."""
    found = launch_commands.SERVING[launcher].SEARCHED | fixed
    if found.get("weights") is FP8:
        return {"compute": FP8, "outer": BF16} | found
    return found


DEFAULT_RESERVE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeRequest:
    """A question without the layout."""

    model: Transformer
    machine: Machine
    P: int
    G: int
    batch: int | None
    policy: str | None
    chunk: int | None
    reserve: float | None
    gpu_memory_utilization: float | None
    max_num_seqs: int | None
    max_model_len: int | None
    prefix_cache_hit: float
    draft_tokens: int | None
    acceptance_length: float | None
    draft_model: Transformer | None
    usd_per_hour: float | None
    efficiency: str | DeviceBenchmark
    expert_skew: float | None
    weights_written: bool = False
    draft_cost: float | None = None  # of what is neither a model nor a head of one layer

    @classmethod
    def of(cls, typed: Mapping[str, Any]) -> "ServeRequest":
        """The question from all typed options; those of the layout are left out."""
        names = [f.name for f in fields(cls) if f.name not in ("weights_written", "draft_cost")]
        return cls(**{name: typed[name] for name in names}, weights_written=typed.get("weights") is not None)

    def __post_init__(self) -> None:
        shared.check_expert_skew(self.model, self.expert_skew)
        if self.reserve is not None and self.gpu_memory_utilization is not None:
            raise ValueError("--reserve and --gpu-memory-utilization say the same; write only one of them")
        if (self.draft_tokens is None) != (self.acceptance_length is None):
            raise ValueError(
                "--draft-tokens and --acceptance-length belong together; write both, as in "
                "--draft-tokens 3 --acceptance-length 2.5"
            )
        if self.draft_model and self.draft_tokens is None:
            raise ValueError("--draft-model needs --draft-tokens and --acceptance-length; write them too")
        self.drafting.check(self.model)
        if self.max_model_len is not None and self.max_model_len < self.P + self.G:
            raise ValueError(
                f"a prompt of {self.P:,} and an output of {self.G:,} tokens exceed --max-model-len "
                f"{self.max_model_len:,}; write shorter lengths or a larger cap"
            )
        if self.batch and self.max_num_seqs and self.batch > self.max_num_seqs:
            raise ValueError(f"--batch {self.batch:,} exceeds --max-num-seqs {self.max_num_seqs:,}")

    @property
    def step_tokens(self) -> int:
        """The largest number of prompt tokens in a step: as given, or the default of vLLM for the chip."""
        return self.chunk or default_batched_tokens(self.machine.chip)

    @property
    def free_share(self) -> float:
        """The share of the HBM that is kept free."""
        if self.gpu_memory_utilization is not None:
            return 1 - self.gpu_memory_utilization
        return DEFAULT_RESERVE if self.reserve is None else self.reserve

    @property
    def cached(self) -> int:
        """The prompt tokens that are in the prefix cache; the last token is always processed."""
        return min(round(self.prefix_cache_hit * self.P), self.P - 1)

    @property
    def drafting(self) -> inference.Drafting:
        """Speculative decoding as asked for, by a draft model or by a head of one layer."""
        if self.draft_tokens is None or self.acceptance_length is None:
            return inference.PLAIN
        return inference.Drafting(
            tokens=self.draft_tokens,
            acceptance_length=self.acceptance_length,
            cost=self._draft_cost,
            model=self.draft_model,
        )

    @property
    def _draft_cost(self) -> float:
        if self.draft_cost is not None:
            return self.draft_cost
        return 0.0 if self.draft_model else 1 / self.model.L

    def with_stored(self, written: dict[str, Any]) -> dict[str, Any]:
        """These fields of a layout, with the types that the model's file names for what they leave open."""
        named = serving_types(self.model)
        if "weights" in written:  # of all weights, whatever the file stores
            named = {field: kind for field, kind in named.items() if field == "kv"}
        rates = self.machine.chip.rates()
        for field in ("compute", "experts_compute"):
            if field in named and ("compute" in written or named[field].name not in rates):
                del named[field]  # kernels convert the weights
        return named | written

    def efficiency_for(self, compute: DType) -> ServingEfficiency:
        """The efficiency for matmuls in that dtype."""
        chip = self.machine.chip
        if isinstance(self.efficiency, DeviceBenchmark):
            found = self.efficiency.serving(chip, compute)
        else:
            found = PEAK if self.efficiency == PEAK.name else calibrated.serving(chip, compute)
        return found if self.expert_skew is None else replace(found, expert_skew=self.expert_skew)

    @property
    def interval_factor(self) -> float | None:
        """The factor of the prediction interval, or None at documented peaks."""
        if self.efficiency == PEAK.name:
            return None
        return short_answer.serving_factor(self.model, self.machine.chip)

    @property
    def values(self) -> dict[str, Any]:
        """The question as a dictionary, for JSON."""
        return {
            "model": self.model.name,
            "machine": self.machine.name,
            "prompt_length_tokens": self.P,
            "output_length_tokens": self.G,
            "chunk_tokens": self.step_tokens,
            "prefix_cache_hit": self.prefix_cache_hit,
            "draft_tokens": self.draft_tokens,
            "acceptance_length": self.acceptance_length,
            "usd_per_chip_hour": self.price.usd_per_hour,
            "usd_as_of": self.price.as_of,
            "efficiency": str(self.efficiency),
            "band_factor": self.interval_factor,
            "assumed": list(self.assumed),
        }

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the name of the checkpoint tells, and no file or option."""
        kind = named_format(self.model.quantization)
        if not kind or self.weights_written:
            return ()
        return (
            f"The weights of {self.model.name} are stored in {kind}, as the name of the checkpoint says, but "
            "for the embedding and the unembedding; --weights names another type.",
        )

    @property
    def price(self) -> ChipPrice:
        """The price of one chip-hour."""
        return price_of(self.machine.chip, self.usd_per_hour)

    @property
    def memory_arguments(self) -> dict[str, Any]:
        """The arguments for memory: half-generated sequences, the reserved share, and the draft model."""
        return {"S": ceil(self.P + self.G / 2), "reserve": self.free_share, "drafting": self.drafting}

    def one(self, layout: Layout) -> Answer:
        """The answer for one layout, with the given batch or the largest that fits."""
        most = inference.largest_batch(self.model, layout, self.machine, **self.memory_arguments)
        if most < (self.batch or 1):
            held = inference.memory(
                self.model, layout, self.machine, batch=self.batch or 1, **self.memory_arguments
            )
            values = {"feasible": False, "reasons": [str(held)], "layout": shared.way_values(layout)}
            return Answer(summary=f"{layout}: {held}", values=self.values | values, refused=True)
        batch = self.batch or min(most, self.max_num_seqs or most)
        served = self.steady(layout, batch, self.policy or POLICIES[0])
        return self._answer(served, (), {}, ())

    def steady(self, layout: Layout, batch: int, policy: str) -> Serving:
        """The steady state of a layout with that many sequences."""
        return steady(
            self.model,
            self.machine,
            layout,
            P=self.P,
            G=self.G,
            chunk=self.step_tokens,
            cached=self.cached,
            drafting=self.drafting,
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
            chunk=self.step_tokens,
            cached=self.cached,
            drafting=self.drafting,
            fixed=fixed,
            ttft_s=ttft_s,
            itl_s=itl_s,
            batches=self._batches,
            usd_per_hour=self.usd_per_hour,
            policies=(self.policy,) if self.policy else POLICIES,
            reserve=self.free_share,
            efficiency=self.efficiency_for(fixed.get("compute", BF16)),
            watch=watch,
        )

    @property
    def _batches(self) -> tuple[int, ...] | None:
        """The batch sizes to try: the given one, all up to --max-num-seqs, or None for all that fit."""
        if self.batch:
            return (self.batch,)
        return tuple(sizes(self.max_num_seqs)) if self.max_num_seqs else None

    def best(self, found: Front, keep: int) -> Answer:
        """The answer for a front: its points, and its cheapest one in detail."""
        values = {"search": serve_tables.front_values(found)}
        details = shared.search_lines(found.searched, found.rejected)
        if not found.points:
            told = {"feasible": False, "reasons": [str(r) for r in found.rejected]}
            misses = "; ".join(one.why for one in found.misses)
            refusal = f"No layout is possible for {self.model.name} on {self.machine.name}: {misses}"
            return Answer(summary=refusal, values=self.values | told | values, details=details, refused=True)
        return self._answer(found.best.serving, (serve_tables.front(found, keep),), values, details)

    def emitted(self, found: Front, keep: int, launcher: str, name: str) -> Answer:
        """The cheapest option that a server can express, with its launch command."""
        refused = None
        for point in sorted(found.points, key=lambda p: p.cost):
            one = point.serving
            try:
                command = self._launched(launcher, point.layout, int(one.slots), one.policy, name)
            except ValueError as error:
                refused = refused or error
                continue
            values = {"search": serve_tables.front_values(found)}
            details = shared.search_lines(found.searched, found.rejected)
            answer = self._answer(one, (serve_tables.front(found, keep),), values, details)
            return _with_command(answer, command)
        if refused:
            raise refused
        return self.best(found, keep)

    def written(self, layout: Layout, launcher: str, name: str) -> Answer:
        """The answer for one layout, with the command that launches it."""
        answer = self.one(layout)
        if answer.refused:
            return answer
        most = inference.largest_batch(self.model, layout, self.machine, **self.memory_arguments)
        slots = self.batch or min(most, self.max_num_seqs or most)
        command = self._launched(launcher, layout, slots, self.policy or POLICIES[0], name)
        return _with_command(answer, command)

    def _launched(
        self, launcher: str, layout: Layout, slots: int, policy: str, name: str
    ) -> launch_commands.Emission:
        """The launch command of a layout that serves so many sequences; a LaunchError says what it lacks."""
        # types that the options name, not those of the published file
        model = replace(self.model, quantization=None) if self.weights_written else self.model
        one = launch_commands.serving_launch(
            launcher,
            model,
            self.machine,
            layout,
            sequences=slots,
            S=self.memory_arguments["S"],
            chunk=self.step_tokens,
            policy=policy,
            fraction=1 - self.free_share,
            max_length=self.max_model_len,
            drafts=self.draft_tokens or 0,
            draft=Draft(self.draft_model) if self.draft_model else HEAD,
        )
        return launch_commands.serving(one, name)

    def _answer(
        self,
        one: Serving,
        listed: tuple[TextTable, ...],
        values: dict[str, Any],
        details: tuple[str, ...],
    ) -> Answer:
        peak = replace(self, efficiency=PEAK.name).steady(one.step.layout, int(one.slots), one.policy)
        held = inference.memory(
            self.model, one.step.layout, self.machine, batch=int(one.slots), **self.memory_arguments
        )
        price = self.price.usd_per_hour
        usd = None if price is None else one.usd_per_million(price)
        replicas = self.machine.chips // one.chips
        summary = "\n".join(short_answer.serving_lines(one, held, replicas, self.interval_factor, usd))
        dtypes = short_answer.dtypes(one.step.layout)
        told = () if dtypes in summary else (("types", dtypes),)
        return Answer(
            summary=summary,
            tables=(
                *listed,
                *serve_tables.tables(one, peak, held, usd, self.price, self._capacity(one), told),
                *shared.assumed_table(self.assumed),
            ),
            values=self.values
            | {"feasible": True}
            | values
            | {"peak_output_tokens_per_s": peak.tokens_per_s, "peak_itl_s": peak.itl_s}
            | serve_tables.values(one, held, usd)
            | self._capacity(one).values,
            steps=tuple(serve_tables.derivation(one, held, price)),
            details=details,
        )

    def _capacity(self, one: Serving) -> serve_tables.Capacity:
        """The tokens that the KV cache of a replica holds, and the sequences of the longest context."""
        layout, longest = one.step.layout, self.max_model_len or self.P + self.G
        full: dict[str, Any] = self.memory_arguments | {"S": longest}
        most = inference.largest_batch(self.model, layout, self.machine, **full)
        held = inference.concurrency(self.model, layout, self.machine, **full)
        return serve_tables.Capacity(
            kv_tokens=int(held * longest),
            longest_tokens=longest,
            sequences=most,
            used=int(one.slots) * (self.P + self.G / 2),
        )

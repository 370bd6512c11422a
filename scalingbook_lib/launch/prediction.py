"""How fast does a launch command run, does it fit, what binds, and which single change would help most?

`of_training` and `of_serving` answer for a command that was read, and their results print as the short
answer. Nothing is executed. Page: Predict a run from its launch command.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from scalingbook_lib import calibrated, inference, training
from scalingbook_lib.calibrated import confidence, short_answer
from scalingbook_lib.calibrated.memory_margin import memory_margin
from scalingbook_lib.inference import PLAIN, POLICIES, Drafting, Serving, ServingEfficiency, ServingMemory
from scalingbook_lib.launch import changes
from scalingbook_lib.launch.changes import ServingChange, TrainingChange
from scalingbook_lib.launch.reading import Account
from scalingbook_lib.launch.serving import ServingLaunch
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import TrainingLaunch
from scalingbook_lib.training import Plan, TrainingEfficiency, TrainingStep
from scalingbook_lib.units import DType, Result, percent, si
from scalingbook_lib.words import pluralize

WIDTH = 88  # of the short answer
_ANY_MEMORY = -1e9  # the share by which a plan may exceed the HBM: changes are judged by time first


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLoad(Result):
    """The requests that a server gets: lengths in tokens, and how many at once, of all replicas.

    Without `concurrency`, there are as many as the caps and the cache of the server allow. `prefix_cache_hit`
    is the share of the prompt tokens in the prefix cache, and `acceptance_length` the mean number of tokens
    of a decode step with drafts.
    """

    prompt: int = 1024
    output: int = 512
    concurrency: int | None = None
    prefix_cache_hit: float = 0.0
    acceptance_length: float | None = None

    def batch(self, launch: ServingLaunch) -> int | None:
        """The sequences of a replica at once; None for all that fit."""
        if self.concurrency is None:
            return None
        batch = -(-self.concurrency // launch.replicas)
        return min(batch, launch.max_sequences or batch)  # the others wait in the queue

    def drafting(self, launch: ServingLaunch) -> Drafting:
        """Speculative decoding as the command sets it."""
        if not launch.drafts or self.acceptance_length is None:
            return PLAIN
        return Drafting(
            tokens=launch.drafts,
            acceptance_length=self.acceptance_length,
            cost=launch.draft.cost(launch.model),
            model=launch.draft.model,
        )

    def memory_arguments(self, launch: ServingLaunch) -> dict[str, Any]:
        """The arguments for memory: half-generated sequences, what the engine leaves, and the draft model."""
        S = ceil(self.prompt + self.output / 2)
        return {"S": S, "reserve": launch.reserve, "drafting": self.drafting(launch)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPrediction(Result):
    """A training launch, the step of its plan, and the changes that would help most.

    `band_factor` is the factor of the 80% interval, None at a given share of the peak.
    """

    launch: TrainingLaunch
    written: confidence.WrittenStep
    band_factor: float | None
    changes: tuple[TrainingChange, ...] = ()

    @property
    def step(self) -> TrainingStep | None:
        """The step; None if the plan cannot be."""
        return self.written.step

    @property
    def fits(self) -> bool:
        """Whether the counted memory is within the HBM."""
        return self.step is not None and self.step.memory.total <= self.launch.machine.chip.hbm_bytes

    @property
    def binds(self) -> str:
        """What takes most time, and what would shorten it."""
        return f"{self.step.bottleneck}: {self.step.remedy}" if self.step else ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan, its time and its memory, or why it cannot be."""
        if self.step is None:
            return (f"{self.written.plan}: {'; '.join(self.written.reasons)}",)
        return tuple(short_answer.training_lines(self.step, self.band_factor, self.written.confidence))

    def __str__(self) -> str:
        wanted = "Would help" if self.fits else "Would make it fit, or nearly"
        told = [
            f"{wanted}: {one.what} ({si(one.step.total_s, 's')}, {-one.gain:+.0%}, "
            f"{si(one.step.memory.total, 'B')}){_flags(one.flags)}"
            for one in self.changes
        ]
        return _wrapped((*self.lines, *_rest(self.binds, told, self.launch.account)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPrediction(Result):
    """A serving launch under a load: the steady state of a replica, and the changes that would help most."""

    launch: ServingLaunch
    load: RequestLoad
    served: Serving | None
    memory: ServingMemory
    band_factor: float | None
    changes: tuple[ServingChange, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether at least the sequences of the load fit."""
        return self.served is not None

    @property
    def itl_s(self) -> float | None:
        """The inter-token latency; None if not even one sequence fits."""
        return self.served.itl_s if self.served else None

    @property
    def binds(self) -> str:
        """What takes most time of a decode step, and what would shorten it."""
        return f"{self.served.step.bottleneck}: {self.served.step.remedy}" if self.served else ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The layout, its latencies and its memory, or why it does not fit."""
        if self.served is None:
            return (f"{self.launch.layout}: {self.memory}",)
        replicas = self.launch.replicas
        return tuple(short_answer.serving_lines(self.served, self.memory, replicas, self.band_factor))

    def __str__(self) -> str:
        told = [
            f"{'Would help' if self.fits else 'Would make it fit'}: {one.what} "
            f"({_helped(one)}, ITL {si(one.served.itl_s, 's')}){_flags(one.flags)}"
            for one in self.changes
        ]
        return _wrapped((*self.lines, *_rest(self.binds, told, self.launch.account)))


def _helped(one: ServingChange) -> str:
    """What a change does: to the throughput or the ITL, or how many sequences fit with it."""
    if one.gain is None:
        return pluralize(int(one.served.slots), "sequence")
    return f"{one.helps} {'+' if one.helps == 'throughput' else '−'}{percent(one.gain)}"


def _wrapped(lines: Iterable[str]) -> str:
    """The lines, of which long ones go on indented."""
    how: dict[str, Any] = {"subsequent_indent": "  ", "break_on_hyphens": False, "break_long_words": False}
    return "\n".join(textwrap.fill(line, WIDTH, **how) for line in lines)


def _flags(flags: tuple[str, ...]) -> str:
    return f": {' '.join(flags)}" if flags else ""


def _rest(binds: str, told: list[str], account: Account) -> Iterator[str]:
    """What binds, the changes, and the flags that the answer does not use."""
    if binds:
        yield f"Bound by {binds}"
    yield from told
    if account.unused:
        yield f"Not used: {', '.join(one.flag for one in account.unused)}"
    if account.unknown:
        yield f"Unknown: {', '.join(one.name for one in account.unknown)}"


def of_training(
    launch: TrainingLaunch, efficiency: TrainingEfficiency | None = None, *, with_band: bool = True
) -> TrainingPrediction:
    """The step of exactly the plan of a command, and the changes that would help most.

    The default is the efficiency that was calibrated to published runs with this framework; `with_band` says
    whether the error of predictions is known for it.
    """
    shares = efficiency or launch.efficiency
    model, machine, plan = launch.model, launch.machine, launch.plan
    found = confidence.as_written(model, machine, plan, batch=launch.batch, T=launch.T, efficiency=shares)
    factor = short_answer.training_factor(model, machine.chip, plan.compute, launch.software)

    def judge(other: Plan) -> TrainingStep | None:
        how: dict[str, Any] = {"batch": launch.batch, "T": launch.T}
        if training.feasible(model, machine, other, **how, headroom=_ANY_MEMORY):
            return None
        try:
            return training.step(model, machine, other, **how, efficiency=shares)
        except ValueError:
            return None

    left = memory_margin(machine.chip).headroom
    better = changes.training(launch, found.step, judge, headroom=left) if found.step else ()
    return TrainingPrediction(
        launch=launch, written=found, band_factor=factor if with_band else None, changes=better
    )


type EfficiencyFor = Callable[[DType], ServingEfficiency]


def of_serving(
    launch: ServingLaunch,
    load: RequestLoad | None = None,
    efficiency: EfficiencyFor | None = None,
    *,
    with_band: bool = True,
) -> ServingPrediction:
    """The steady state of exactly the layout of a command, and the changes that would help most.

    `efficiency` gives the one for matmuls in a type; the default is the calibrated one.
    """
    load, chip = load or RequestLoad(), launch.machine.chip
    if launch.max_length is not None and launch.max_length < load.prompt + load.output:
        raise LaunchError(
            f"a prompt of {load.prompt:,} and an output of {load.output:,} tokens exceed the context of "
            f"{launch.max_length:,} tokens that the command sets; give a load with shorter lengths"
        )
    shares = efficiency or (lambda compute: calibrated.serving(chip, compute))
    now = _served(launch, load, shares)
    batch = int(now.slots) if now else load.batch(launch) or 1
    held = inference.memory(
        launch.model, launch.layout, launch.machine, batch=batch, **load.memory_arguments(launch)
    )

    def judge(other: ServingLaunch) -> Serving | None:
        return _served(other, load, shares)

    better = changes.serving(launch, now, judge) if now else changes.fitting(launch, judge)
    factor = short_answer.serving_factor(launch.model, chip) if with_band else None
    return ServingPrediction(
        launch=launch, load=load, served=now, memory=held, band_factor=factor, changes=better
    )


def _served(launch: ServingLaunch, load: RequestLoad, efficiency: EfficiencyFor) -> Serving | None:
    """The steady state of a launch; None where no sequence fits or it cannot be."""
    model, machine, layout = launch.model, launch.machine, launch.layout
    try:
        most = inference.largest_batch(model, layout, machine, **load.memory_arguments(launch))
        asked = load.batch(launch)
        if most < (asked or 1):
            return None
        return inference.serve(
            model,
            machine,
            layout,
            P=load.prompt,
            G=load.output,
            chunk=launch.chunk,
            cached=min(round(load.prefix_cache_hit * load.prompt), load.prompt - 1),
            drafting=load.drafting(launch),
            batch=asked or min(most, launch.max_sequences or most),
            policy=launch.policy or POLICIES[0],
            efficiency=efficiency(layout.compute),
        )
    except ValueError:
        return None

"""Which chips write answers and which train on them, together or apart, and why?

One step of reinforcement learning: every answer is written (`serving.rollout`), scored by forward passes,
trained on (`training.step` of the best plan), and the new weights handed to every engine. Three ways are
tried: all chips do one after the other; two pools, each answer written with weights one step old; two pools
whose slots are refilled at once, answers as old as the longest takes. Chapter: After pretraining.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from scalingbook_lib import inference
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.planner.search import plans
from scalingbook_lib.serving.rollout import drawn, mean_context, refilled, rollout
from scalingbook_lib.training import PEAK, Efficiency, TrainingStep
from scalingbook_lib.units import Told, count, percent, si

TOGETHER, ONE_STALE, REFILLED = "together", "apart, one step stale", "apart, refilled"
WAYS = (TOGETHER, ONE_STALE, REFILLED)


@dataclass(frozen=True, slots=True)
class Loop(Told):
    """What one step has to do: answers of these lengths to prompts of P tokens, `scored` forward passes."""

    answers: int
    P: int
    lengths: tuple[int, ...] = field(repr=False)
    scored: int = 2  # log-probabilities: of the old policy, and of a reference

    @property
    def G(self) -> float:
        """Tokens of an answer in the mean."""
        return sum(self.lengths) / len(self.lengths)

    @property
    def tokens(self) -> float:
        """Those that are trained on, prompts included."""
        return self.answers * (self.P + self.G)

    def __str__(self) -> str:
        return (
            f"{self.answers:,} answers of {count(round(self.G))} tokens in the mean, "
            f"{max(self.lengths):,} at most, to prompts of {self.P:,}"
        )


def loop(
    answers: int, *, P: int, G: float, spread: float = 0.8, most: int = 2**20, scored: int = 2, seed: int = 0
) -> Loop:
    """A step whose answers have lognormal lengths; `spread` is the deviation of the logarithm, 0 for none."""
    if answers < 1 or P < 1 or scored < 0:
        raise ValueError(f"{answers=}, {P=}, {scored=}: write at least one answer and one token of a prompt")
    return Loop(answers, P, tuple(drawn(answers, G, spread, most=most, seed=seed)), scored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Told):
    """One way to share the chips: engines that write, chips that train, seconds of each part of a step."""

    way: str
    engines: int
    writing: int  # chips of all engines
    training: int
    slots: int  # of one engine
    generate_s: float
    score_s: float
    train_s: float
    hand_over_s: float
    longest_s: float  # the longest answer, from its first token to its last

    @property
    def total_s(self) -> float:
        """One after the other where the chips are the same, else the longer side; then the hand-over."""
        learn_s = self.score_s + self.train_s
        both = self.generate_s + learn_s if self.way == TOGETHER else max(self.generate_s, learn_s)
        return both + self.hand_over_s

    @property
    def staleness(self) -> int:
        """By how many updates the weights have moved, at most, when an answer is trained on."""
        if self.way == TOGETHER:
            return 0
        return 1 if self.way == ONE_STALE else 1 + ceil(self.longest_s / self.total_s)

    @property
    def generating(self) -> float:
        """The share of the step in which answers are written."""
        return self.generate_s / self.total_s

    @property
    def binds(self) -> str:
        """The side that takes longer."""
        learn_s = self.score_s + self.train_s
        return "rollouts" if self.generate_s >= learn_s else "scores and training"

    def __str__(self) -> str:
        chips = f"{self.writing:,} chips" if self.way == TOGETHER else f"{self.writing:,} + {self.training:,}"
        parts = {"rollouts": self.generate_s, "scores": self.score_s, "training": self.train_s}
        told = ", ".join(f"{name} {si(s, 's')}" for name, s in parts.items())
        return (
            f"{self.way}, {chips}: {si(self.total_s, 's')} a step ({told}, hand-over "
            f"{si(self.hand_over_s, 's')}), answers at most {self.staleness} "
            f"update{'s' * (self.staleness != 1)} old; {self.binds} bind"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits(Told):
    """Every split that was tried, the fastest first, and what could not be."""

    model: Transformer
    machine: Machine
    loop: Loop
    learner: TrainingStep
    splits: tuple[Split, ...]
    rejected: tuple[str, ...]
    staleness: int

    @property
    def winner(self) -> Split:
        """The fastest whose answers are fresh enough; a ValueError where there is none."""
        fresh = [split for split in self.splits if split.staleness <= self.staleness]
        if not fresh:
            raise ValueError(
                f"no split has answers at most {self.staleness} updates old: {'; '.join(self.rejected)}"
            )
        return fresh[0]

    def best(self, way: str) -> Split:
        """The fastest of one way."""
        found = [split for split in self.splits if split.way == way]
        if not found:
            raise ValueError(
                f"no split is {way!r}; ask for one of {', '.join(WAYS)}: {'; '.join(self.rejected)}"
            )
        return found[0]

    @property
    def why(self) -> str:
        """The winner against the best of the other ways."""
        best = self.winner
        others = dict.fromkeys(split.way for split in self.splits if split.way != best.way)
        return "\n".join(
            f"{percent(self.best(way).total_s / best.total_s - 1)} longer: {self.best(way)}" for way in others
        )

    def __str__(self) -> str:
        return f"{self.model.name}, {self.loop}, on {self.machine.name}: {self.winner}\n{self.why}"

    def __iter__(self) -> Iterator[Split]:
        return iter(self.splits)


def posttraining(
    model: Transformer,
    machine: Machine,
    engine: Layout,
    asked: Loop,
    *,
    staleness: int = 1,
    efficiency: Efficiency = PEAK,
    serving: inference.Efficiency = inference.PEAK,
) -> Splits:
    """Every number of engines, together and apart; the fastest whose answers are fresh enough is the winner.

    Training is timed by the best plan on the whole machine, and takes as many chip-seconds on a part of it.
    An engine is one copy of the model on `engine.chips`. Weights reach every engine at once over its own
    network cards.
    """
    T = round(asked.P + asked.G)
    learner = plans(model, machine, batch=asked.answers, T=T, efficiency=efficiency, keep=1).winner.step
    search = _Search(
        model=model, machine=machine, engine=engine, asked=asked, learner=learner, serving=serving
    )
    found = sorted(search.splits(), key=lambda split: split.total_s)
    return Splits(
        model=model,
        machine=machine,
        loop=asked,
        learner=learner,
        splits=tuple(found),
        rejected=tuple(dict.fromkeys(search.rejected)),
        staleness=staleness,
    )


@dataclass(slots=True, kw_only=True)
class _Search:
    """One question: splits found, and why others cannot be."""

    model: Transformer
    machine: Machine
    engine: Layout
    asked: Loop
    learner: TrainingStep
    serving: inference.Efficiency
    rejected: list[str] = field(default_factory=list)

    def splits(self) -> Iterator[Split]:
        """Together on all engines, then apart with one engine, two, ..., as many as leave chips to train."""
        n, each = self.machine.chips, self.engine.chips
        yield from self._split(TOGETHER, n // each, n)
        for engines in range(1, n // each):
            for way in (ONE_STALE, REFILLED):
                yield from self._split(way, engines, n - engines * each)

    def _split(self, way: str, engines: int, learning: int) -> Iterator[Split]:
        chip, a = self.machine.chip, self.asked
        state = training_state(self.model).total / learning / chip.hbm_bytes  # of one chip's memory
        room = inference.largest_batch(
            self.model,
            self.engine,
            self.machine,
            S=ceil(a.P + a.G),
            reserve=state if way == TOGETHER else 0.0,
        )
        slots = min(room, ceil(a.answers / engines))
        if state >= 1 or slots < 1:
            what = (
                f"{learning:,} chips do not hold the training state"
                if state >= 1
                else "no answer fits an engine"
            )
            self.rejected.append(f"{way}: {what}")
            return
        generate_s, longest_s = self._generated(way, engines, slots)
        train_s = self.learner.total_s * self.machine.chips / learning
        yield Split(
            way=way,
            engines=engines,
            writing=engines * self.engine.chips,
            training=learning,
            slots=slots,
            generate_s=generate_s,
            score_s=train_s * a.scored / 3,  # forward is a third of forward and backward
            train_s=train_s,
            hand_over_s=hand_over_s(self.model, self.machine, self.engine),
            longest_s=longest_s,
        )

    def _generated(self, way: str, engines: int, slots: int) -> tuple[float, float]:
        """Seconds of all answers, and of the longest, on the engine that has it."""
        a = self.asked
        case = inference.case(self.model, self.machine, self.engine, self.serving)
        if way == REFILLED:
            rate = engines * refilled(case, a.lengths, P=a.P, slots=slots)
            step_s = case.step_s(slots, slots * mean_context(a.lengths, a.P))
            return sum(a.lengths) / rate, max(a.lengths) * step_s
        dealt = (a.lengths[k::engines] for k in range(engines))
        slowest = rollout(case, max(dealt, key=max), P=a.P, slots=slots)
        return slowest.seconds, slowest.seconds


def hand_over_s(model: Transformer, machine: Machine, engine: Layout) -> float:
    """w P over what the network cards of one engine take in; to all engines at once, as a switch copies."""
    rate = machine.chip.dcn_bytes_per_s
    if not rate:
        raise ValueError(f"nobody says what network {machine.chip.name} has; take another chip")
    return engine.weights.bytes * model.params / (engine.chips * rate)

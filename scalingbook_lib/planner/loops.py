"""What does one step of reinforcement learning do, and how long does it take on chips that are shared so?

Chapter: After pretraining.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.serving.rollout import sample_lengths
from scalingbook_lib.training import TrainingStep
from scalingbook_lib.units import Result, count, percent, si

TOGETHER, ONE_STALE, REFILLED = "together", "apart, one step stale", "apart, refilled"
WAYS = (TOGETHER, ONE_STALE, REFILLED)


@dataclass(frozen=True, slots=True)
class Loop(Result):
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
    return Loop(answers, P, tuple(sample_lengths(answers, G, spread, max_tokens=most, seed=seed)), scored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Result):
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
        learn_s = self.score_s + self.train_s  # the learner's side
        # apart, each side works while the other does
        both = self.generate_s + learn_s if self.way == TOGETHER else max(self.generate_s, learn_s)
        return both + self.hand_over_s

    @property
    def staleness(self) -> int:
        """By how many updates the weights have moved, at most, when an answer is trained on."""
        if self.way == TOGETHER:
            return 0
        # an answer may begin just before one update and run through several
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
        old = f"answers at most {self.staleness} update{'s' * (self.staleness != 1)} old"
        age = old if self.staleness else "answers of the newest weights"
        told = ", ".join(f"{name} {si(s, 's')}" for name, s in parts.items())
        return (
            f"{self.way}, {chips}: {si(self.total_s, 's')} a step ({told}, hand-over "
            f"{si(self.hand_over_s, 's')}), {age}; {self.binds} bind"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits(Result):
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
        """The winner against the best of the other ways: slower, or with answers that are too old."""
        won = self.winner
        others = [self.best(way) for way in WAYS if way in {s.way for s in self.splits} - {won.way}]
        longer = [one.total_s / won.total_s - 1 for one in others]
        told = [f"{percent(more)} longer" if more >= 0 else "too old" for more in longer]
        return "\n".join(f"{why}: {one}" for why, one in zip(told, others, strict=True))

    def __str__(self) -> str:
        return f"{self.model.name}, {self.loop}, on {self.machine.name}: {self.winner}\n{self.why}"

    def __iter__(self) -> Iterator[Split]:
        return iter(self.splits)

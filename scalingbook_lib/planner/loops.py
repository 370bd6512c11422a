"""One step of reinforcement learning, and its time for a given split of the chips.

Chapter: RL post-training systems.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.serving.rollout import sample_lengths
from scalingbook_lib.training import TrainingStep
from scalingbook_lib.units import Result, count, percent, si
from scalingbook_lib.words import pluralize

COLOCATED, ONE_STEP_OFF, ASYNCHRONOUS = "colocated", "one-step off-policy", "fully asynchronous"
DESIGNS = (COLOCATED, ONE_STEP_OFF, ASYNCHRONOUS)


@dataclass(frozen=True, slots=True)
class Algorithm(Result):
    """The models that an RL algorithm trains and holds, and its forward passes over every token.

    All models are assumed to have the size of the policy.
    """

    name: str
    trained: int  # models with gradients and optimizer state: the policy, and the critic of PPO
    frozen: int  # models that only run forward: the reference policy, and the reward model if there is one
    forward: int  # passes without a backward pass, each over prompt and response

    def flops_per_token(self, params: float) -> float:
        """2 P to generate, 2 P per forward pass, and 6 P per trained model."""
        return (2 + 2 * self.forward + 6 * self.trained) * params

    def __str__(self) -> str:
        return f"{self.name}: {self.trained} trained, {self.frozen} frozen, {self.forward} forward passes"


# forward passes: log-probabilities under the old policy and the reference policy, which the KL penalty needs
GRPO = Algorithm("GRPO", trained=1, frozen=1, forward=2)
GRPO_WITHOUT_KL = Algorithm("GRPO without KL penalty", trained=1, frozen=0, forward=1)
# two more passes: the critic's values, and the reward model
PPO = Algorithm("PPO", trained=2, frozen=2, forward=4)


@dataclass(frozen=True, slots=True)
class Loop(Result):
    """The work of one step: responses of these lengths to prompts of P tokens, and an algorithm.

    `environment_s` are the seconds for which each response waits for its environment, such as tools or tests.
    """

    answers: int
    P: int
    lengths: tuple[int, ...] = field(repr=False)
    algorithm: Algorithm = GRPO
    environment_s: float = 0.0

    @property
    def G(self) -> float:
        """Tokens per response, on average."""
        return sum(self.lengths) / len(self.lengths)

    @property
    def tokens(self) -> float:
        """Tokens that are trained on, prompts included."""
        return self.answers * (self.P + self.G)

    def __str__(self) -> str:
        tools = f", each waiting {si(self.environment_s, 's')} for tools" if self.environment_s else ""
        return (
            f"{self.answers:,} responses of {count(round(self.G))} tokens on average, "
            f"at most {max(self.lengths):,}, to prompts of {self.P:,}{tools}"
        )


def loop(
    answers: int,
    *,
    P: int,
    G: float,
    spread: float = 0.8,
    most: int = 2**20,
    algorithm: Algorithm = GRPO,
    environment_s: float = 0.0,
    seed: int = 0,
) -> Loop:
    """A step whose responses have lognormal lengths; `spread` is the standard deviation of the logarithm."""
    if answers < 1 or P < 1:
        raise ValueError(f"{answers=}, {P=}: write at least one response and one prompt token")
    if not environment_s >= 0:
        raise ValueError(f"{environment_s=}: write the seconds that a response waits for tools, 0 or more")
    lengths = sample_lengths(answers, G, spread, max_tokens=most, seed=seed)
    return Loop(answers, P, tuple(lengths), algorithm, environment_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Result):
    """One split of the chips: engines that generate, chips that train, and the seconds of each phase."""

    way: str
    engines: int
    rollout_chips: int  # of all engines
    training_chips: int
    slots: int  # per engine
    generate_s: float  # environment time included
    score_s: float
    train_s: float
    weight_sync_s: float
    longest_s: float  # the longest response, from its first token to its last

    @property
    def total_s(self) -> float:
        """Seconds per step: sum of the phases if colocated, else the longer pool; then the weight sync."""
        learn_s = self.score_s + self.train_s  # the trainer's pool
        both = self.generate_s + learn_s if self.way == COLOCATED else max(self.generate_s, learn_s)
        return both + self.weight_sync_s

    @property
    def staleness(self) -> int:
        """The most updates by which a response lags behind the weights when it is trained on."""
        if self.way == COLOCATED:
            return 0
        # a response may begin just before one update and run through several
        return 1 if self.way == ONE_STEP_OFF else 1 + ceil(self.longest_s / self.total_s)

    @property
    def rollout_share(self) -> float:
        """Generation time as a share of the step."""
        return self.generate_s / self.total_s

    @property
    def bottleneck(self) -> str:
        """The phases that take longer: generation, or those of the trainer."""
        learn_s = self.score_s + self.train_s
        return "rollouts" if self.generate_s >= learn_s else "log-probs and training"

    def __str__(self) -> str:
        pools = f"{self.rollout_chips:,}" + f" + {self.training_chips:,}" * (self.way != COLOCATED)
        parts = {"rollouts": self.generate_s, "log-probs": self.score_s, "training": self.train_s}
        old = f"staleness at most {pluralize(self.staleness, 'update')}"
        age = old if self.staleness else "on-policy"
        told = ", ".join(f"{name} {si(s, 's')}" for name, s in parts.items())
        return (
            f"{self.way} on {pools} chips: {si(self.total_s, 's')} per step ({told}, weight sync "
            f"{si(self.weight_sync_s, 's')}), {age}; limited by {self.bottleneck}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits(Result):
    """Every split that was tried, the fastest first, and the reasons why others are impossible."""

    model: Transformer
    machine: Machine
    loop: Loop
    learner: TrainingStep
    splits: tuple[Split, ...]
    rejected: tuple[str, ...]
    staleness: int

    @property
    def winner(self) -> Split:
        """The fastest split within the staleness limit; ValueError if there is none."""
        fresh = [split for split in self.splits if split.staleness <= self.staleness]
        if not fresh:
            raise ValueError(
                f"no split keeps staleness to {self.staleness} updates: {'; '.join(self.rejected)}"
            )
        return fresh[0]

    def best(self, way: str) -> Split:
        """The fastest split of one design."""
        found = [split for split in self.splits if split.way == way]
        if not found:
            raise ValueError(
                f"no split is {way!r}; ask for one of {', '.join(DESIGNS)}: {'; '.join(self.rejected)}"
            )
        return found[0]

    @property
    def why(self) -> str:
        """The best of each other design: how much slower than the winner, or too stale."""
        won = self.winner
        others = [self.best(way) for way in DESIGNS if way in {s.way for s in self.splits} - {won.way}]
        longer = [one.total_s / won.total_s - 1 for one in others]
        told = [f"{percent(more)} slower" if more >= 0 else "too stale" for more in longer]
        return "\n".join(f"{why}: {one}" for why, one in zip(told, others, strict=True))

    def __str__(self) -> str:
        return f"{self.model.name}, {self.loop}, on {self.machine.name}: {self.winner}\n{self.why}"

    def __iter__(self) -> Iterator[Split]:
        return iter(self.splits)

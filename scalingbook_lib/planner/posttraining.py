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
from scalingbook_lib.planner.loops import ONE_STALE, REFILLED, TOGETHER, Loop, Split, Splits
from scalingbook_lib.planner.search import plans
from scalingbook_lib.serving.rollout import mean_context, refilled_tokens_per_s, rollout
from scalingbook_lib.training import PEAK, TrainingEfficiency, TrainingStep


def posttraining(
    model: Transformer,
    machine: Machine,
    engine: Layout,
    asked: Loop,
    *,
    staleness: int = 1,
    efficiency: TrainingEfficiency = PEAK,
    serving: inference.ServingEfficiency = inference.PEAK,
) -> Splits:
    """Every number of engines, together and apart; the fastest whose answers are fresh enough is the winner.

    Training is timed by the best plan on the whole machine, and takes as many chip-seconds on a part of it.
    An engine is one copy of the model, spread as `engine` says; new weights reach all of them at once.
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
    serving: inference.ServingEfficiency
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
            # together, the training state stays where the cache would be
            reserve=state if way == TOGETHER else 0.0,
        )
        slots = min(room, ceil(a.answers / engines))  # no more than an engine has answers for
        if state >= 1 or slots < 1:
            what = (
                f"{learning:,} chips do not hold the training state"
                if state >= 1
                else "no answer fits an engine"
            )
            self.rejected.append(f"{way}: {what}")
            return
        generate_s, longest_s = self._generated(way, engines, slots)
        train_s = self.learner.total_s * self.machine.chips / learning  # as many chip-seconds on fewer chips
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
            rate = engines * refilled_tokens_per_s(
                case, a.lengths, P=a.P, slots=slots
            )  # tokens/s of all engines
            step_s = case.step_s(slots, slots * mean_context(a.lengths, a.P))
            return sum(a.lengths) / rate, max(a.lengths) * step_s
        # dealt in turn, whatever their lengths
        dealt = (a.lengths[k::engines] for k in range(engines))
        slowest = rollout(case, max(dealt, key=max), P=a.P, slots=slots)  # the engine with the longest answer
        return slowest.seconds, slowest.seconds


def hand_over_s(model: Transformer, machine: Machine, engine: Layout) -> float:
    """w P over what the network cards of one engine take in; to all engines at once, as a switch copies."""
    rate = machine.chip.dcn_bytes_per_s
    if not rate:
        raise ValueError(f"nobody says what network {machine.chip.name} has; take another chip")
    # each chip takes in its own part by its own card
    return engine.weights.bytes * model.params / (engine.chips * rate)

"""The best split of chips between generation and training in reinforcement learning.

In one step, engines generate every response (`serving.rollout`), forward passes compute log-probabilities,
the best plan trains on them (`training.step`), and every engine receives the new weights. Three designs are
tried: colocated (all chips run one phase after the other), one-step off-policy (two pools), and fully
asynchronous (two pools, and free slots are refilled at once). Chapter: RL post-training systems.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from scalingbook_lib import inference
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.planner.loops import ASYNCHRONOUS, COLOCATED, ONE_STEP_OFF, Loop, Split, Splits
from scalingbook_lib.planner.search import plans
from scalingbook_lib.serving.agents import agent_rollout_s
from scalingbook_lib.serving.rollout import refilled, rollout
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
    """All splits of the machine, for every number of engines; the winner is the fastest within `staleness`.

    Training is timed by the best plan on the whole machine, and takes the same chip-seconds on a part of it.
    An engine is one model replica, sharded as `engine` says; new weights reach all engines at the same time.
    Frozen models are assumed to be in host memory while the engines generate; `rl_memory` counts them.
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
    """The search of one call: the splits found, and the reasons why others are impossible."""

    model: Transformer
    machine: Machine
    engine: Layout
    asked: Loop
    learner: TrainingStep
    serving: inference.ServingEfficiency
    rejected: list[str] = field(default_factory=list)

    def splits(self) -> Iterator[Split]:
        """Colocated on all engines, then two pools with one engine, two, and so on."""
        n, each = self.machine.chips, self.engine.chips
        yield from self._split(COLOCATED, n // each, n)
        for engines in range(1, n // each):
            for way in (ONE_STEP_OFF, ASYNCHRONOUS):
                yield from self._split(way, engines, n - engines * each)

    def _split(self, way: str, engines: int, learning: int) -> Iterator[Split]:
        chip, a = self.machine.chip, self.asked
        # of one chip's memory; the critic, if there is one, has as much state as the policy
        trained = a.algorithm.trained * training_state(self.model).total
        state = trained / learning / chip.hbm_bytes
        room = inference.largest_batch(
            self.model,
            self.engine,
            self.machine,
            S=ceil(a.P + a.G),
            # if colocated, the training state takes memory from the KV cache
            reserve=state if way == COLOCATED else 0.0,
        )
        slots = min(room, ceil(a.answers / engines))  # no more than an engine has responses for
        if state >= 1 or slots < 1:
            what = (
                f"{learning:,} chips cannot hold the training state"
                if state >= 1
                else "no response fits on an engine"
            )
            self.rejected.append(f"{way}: {what}")
            return
        generate_s, longest_s = self._generated(way, engines, slots)
        # as many chip-seconds on fewer chips
        policy_s = self.learner.total_s * self.machine.chips / learning
        yield Split(
            way=way,
            engines=engines,
            rollout_chips=engines * self.engine.chips,
            training_chips=learning,
            slots=slots,
            generate_s=generate_s,
            score_s=policy_s * a.algorithm.forward / 3,  # forward is a third of forward and backward
            train_s=policy_s * a.algorithm.trained,
            weight_sync_s=weight_sync_s(self.model, self.machine, self.engine),
            longest_s=longest_s,
        )

    def _generated(self, way: str, engines: int, slots: int) -> tuple[float, float]:
        """Seconds for all responses, and for the longest one."""
        a = self.asked
        case = inference.case(self.model, self.machine, self.engine, self.serving)
        if way == ASYNCHRONOUS:
            filled = refilled(case, a.lengths, P=a.P, slots=slots, environment_s=a.environment_s)
            rate = engines * filled.tokens_per_s  # of all engines
            return sum(a.lengths) / rate, max(a.lengths) * filled.step_s + a.environment_s
        # round-robin, whatever the lengths
        dealt = (a.lengths[k::engines] for k in range(engines))
        longest = max(dealt, key=max)  # of the engine with the longest response
        if a.environment_s:
            generate_s = agent_rollout_s(case, longest, P=a.P, slots=slots, environment_s=a.environment_s)
        else:
            generate_s = rollout(case, longest, P=a.P, slots=slots).seconds
        return generate_s, generate_s


def weight_sync_s(model: Transformer, machine: Machine, engine: Layout) -> float:
    """w P / (n_e W_nic) in seconds: all engines receive at the same time, as by multicast."""
    rate = machine.chip.dcn_bytes_per_s
    if not rate:
        raise ValueError(f"the network bandwidth of {machine.chip.name} is unknown; choose another chip")
    # each chip receives its own shard through its own NIC
    return engine.weights.bytes * model.params / (engine.chips * rate)

"""Can a reader time a step of reinforcement learning? Engines, tails, pools, adapters."""

from functools import cache

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, planner, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.planner.posttraining import hand_over_s

_H100, _B200 = chips.H100, chips.B200
_M8, _M70, _M405 = (models.find(f"LLaMA-3 {size}") for size in ("8B", "70B", "405B"))
_HALVES = (1000, 15_000)  # half of the answers each
_WRITE_S, _LEARN_S, _CHIPS = 300.0, 500.0, 512


def _fitting(writing: float) -> float:
    return round(writing / 8) * 8


def _adapters(m: models.Transformer = _M8, r: int = 32) -> float:
    sides = 3 * (m.D + m.F) + 2 * (m.D + m.N * m.H) + 2 * (m.D + m.K * m.H)
    return r * m.L * sides


@cache
def _chosen() -> planner.Splits:
    asked = planner.loop(1024, P=512, G=4096, spread=0.8, most=32_768)
    return planner.posttraining(_M8, Cluster.of(_H100, 32), Layout(tp=2), asked, staleness=1)


CHECKS = (
    Check(
        key="posttraining.one-answer",
        title="One answer goes on",
        answer=lambda: 20_000 * 2 * _M70.params / (8 * _H100.hbm_bytes_per_s),
        unit="s",
        hints=("What does a step of one sequence have to read?", "Eight GPUs read the weights together."),
        mistakes=(
            Mistake(8.0, "Eight GPUs share the reading."),
            Mistake(0.5, "A weight in bf16 has two bytes."),
            Mistake(1 / 20_000, "That is one step; every token needs its own."),
            Mistake(
                lambda: 20_000 * 2 * _M70.params / (8 * _H100.bf16_flops_per_s),
                "That is the arithmetic; one sequence waits for the memory.",
            ),
        ),
    ),
    Check(
        key="posttraining.new-weights",
        title="New weights for everybody",
        answer=lambda: hand_over_s(_M405, Cluster.of(_B200, 512), Layout(tp=16)),
        unit="s",
        hints=("The number of engines is not in it.", "Sixteen cards take in one copy."),
        mistakes=(
            Mistake(16.0, "The cards of all sixteen GPUs of an engine take in one copy."),
            Mistake(32.0, "All engines take their copies at the same time."),
            Mistake(1 / 32, "Every engine needs a whole copy, and has its own cards alone."),
            Mistake(0.5, "A weight in bf16 has two bytes."),
        ),
    ),
    Check(
        key="posttraining.mean-context",
        title="What a slot holds",
        answer=lambda: serving.mean_context(_HALVES, 0),
        unit="tokens",
        hints=(
            "Long answers stay in their slots for longer.",
            "The mean of the squares, over twice the mean.",
        ),
        mistakes=(
            Mistake(
                lambda: sum(_HALVES) / 4,
                "That is half of the mean length; a long answer is met more often than a short one.",
                slip="wrong-formula-mean",
            ),
            Mistake(2.0, "On average an answer is met when half of it is written.", slip="factor-two"),
        ),
    ),
    Check(
        key="posttraining.pools",
        title="Two pools",
        answer=lambda: _fitting(_CHIPS * _WRITE_S / (_WRITE_S + _LEARN_S)),
        unit="chips",
        rel_tol=1e-9,
        difficulty=2,
        hints=("Both pools must take equally long.", "Chip-seconds do not change. An engine has 8 GPUs."),
        mistakes=(
            Mistake(
                lambda: _fitting(_CHIPS * _LEARN_S / (_WRITE_S + _LEARN_S)),
                "That many train; the question is who writes.",
            ),
            Mistake(lambda: _CHIPS / 2, "Equal pools: then the writers wait for the trainers."),
            Mistake(lambda: _fitting(_CHIPS * _WRITE_S / _LEARN_S), "Both together are all of the GPUs."),
        ),
    ),
    Check(
        key="posttraining.adapter-state",
        title="Adapters for the small one",
        answer=lambda: 2 * _M8.params + 16 * _adapters(),
        unit="B",
        difficulty=2,
        hints=(
            "A matrix of D by F gets r times D + F new parameters.",
            "Seven matrices in a layer; keys and values are narrower. The frozen ones take two bytes each.",
        ),
        mistakes=(
            Mistake(
                lambda: 16 * _adapters(),
                "That is the adapters alone; the frozen model has to be there.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: training_state(_M8).total,
                "That is the state of training all weights.",
                slip="wrong-formula-full",
            ),
            Mistake(lambda: _M8.params + 16 * _adapters(), "A frozen weight in bf16 has two bytes."),
        ),
    ),
    Check(
        key="posttraining.best-split",
        title="The planner's split",
        answer=lambda: float(_chosen().winner.writing),
        unit="chips",
        rel_tol=1e-9,
        difficulty=3,
        hints=(
            "planner.loop says what a step has to do, planner.posttraining shares the chips.",
            "Ask for the winner with answers at most one update old.",
        ),
        mistakes=(
            Mistake(lambda: float(_chosen().winner.training), "So many train. How many write?"),
            Mistake(
                lambda: float(_chosen().best("apart, refilled").writing),
                "There the answers are older than one update.",
            ),
        ),
    ),
)

"""Exercises on RL systems: engines, long tails, pools, weight sync and adapters."""

from functools import cache

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, planner, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.planner.posttraining import weight_sync_s

_H100, _B200 = chips.H100, chips.B200
_M8, _M70, _M405 = (models.find(f"Llama 3 {size}") for size in ("8B", "70B", "405B"))
_HALVES = (1000, 15_000)  # half of the responses each
_WRITE_S, _LEARN_S, _CHIPS = 300.0, 500.0, 512


def _fitting(writing: float) -> float:
    return round(writing / 8) * 8


def _adapters(m: models.Transformer = _M8, r: int = 32) -> float:
    sides = 3 * (m.D + m.F) + 2 * (m.D + m.N * m.H) + 2 * (m.D + m.K * m.H)
    return r * m.L * sides


def _held(algorithm: planner.Algorithm = planner.PPO) -> float:
    """Bytes on one of 16 GPUs."""
    known = planner.rl_memory(_M8, Cluster.of(_H100, 16), Layout(tp=2), algorithm)
    return known.hbm_bytes - known.cache_bytes


@cache
def _chosen() -> planner.Splits:
    asked = planner.loop(1024, P=512, G=4096, spread=0.8, most=32_768)
    return planner.posttraining(_M8, Cluster.of(_H100, 32), Layout(tp=2), asked, staleness=1)


CHECKS = (
    Check(
        key="posttraining.one-answer",
        title="Waiting for the longest response",
        answer=lambda: 20_000 * 2 * _M70.params / (8 * _H100.hbm_bytes_per_s),
        unit="s",
        hints=(
            "What does a decode step for one sequence have to read?",
            "Eight GPUs read the weights together.",
        ),
        mistakes=(
            Mistake(8.0, "Each of the eight GPUs reads only its own shard of the weights."),
            Mistake(0.5, "A weight in bf16 takes two bytes."),
            Mistake(1 / 20_000, "That is for one decode step. Every token needs one."),
            Mistake(
                lambda: 20_000 * 2 * _M70.params / (8 * _H100.bf16_flops_per_s),
                "That is the compute time. With one sequence, decoding is memory-bound.",
            ),
        ),
    ),
    Check(
        key="posttraining.new-weights",
        title="Time of a weight sync",
        answer=lambda: weight_sync_s(_M405, Cluster.of(_B200, 512), Layout(tp=16)),
        unit="s",
        hints=("Does the number of engines matter?", "Sixteen NICs receive one replica."),
        mistakes=(
            Mistake(16.0, "An engine receives its replica through the NICs of all sixteen GPUs."),
            Mistake(32.0, "All engines receive the weights at the same time."),
            Mistake(1 / 32, "Every engine needs a full replica and can use only its own NICs."),
            Mistake(0.5, "A weight in bf16 takes two bytes."),
        ),
    ),
    Check(
        key="posttraining.mean-context",
        title="Mean context of a slot",
        answer=lambda: serving.mean_context(_HALVES, 0),
        unit="tokens",
        hints=(
            "Long responses occupy their slots for longer.",
            "Divide the mean of the squares by twice the mean.",
        ),
        mistakes=(
            Mistake(
                lambda: sum(_HALVES) / 4,
                "That is half of the mean length. But a random slot is more likely to hold a long response.",
                slip="wrong-formula-mean",
            ),
            Mistake(2.0, "On average, half of a running response has been generated.", slip="factor-two"),
        ),
    ),
    Check(
        key="posttraining.pools",
        title="Sizing two pools",
        answer=lambda: _fitting(_CHIPS * _WRITE_S / (_WRITE_S + _LEARN_S)),
        unit="chips",
        rel_tol=1e-9,
        difficulty=2,
        hints=(
            "Both pools should take equally long.",
            "The chip-seconds of each phase do not change. An engine has 8 GPUs.",
        ),
        mistakes=(
            Mistake(
                lambda: _fitting(_CHIPS * _LEARN_S / (_WRITE_S + _LEARN_S)),
                "That is how many GPUs train. How many generate?",
            ),
            Mistake(lambda: _CHIPS / 2, "With equal pools, the engines would wait for the trainer."),
            Mistake(
                lambda: _fitting(_CHIPS * _WRITE_S / _LEARN_S),
                "The sizes of the two pools have to add up to all GPUs.",
            ),
        ),
    ),
    Check(
        key="posttraining.adapter-state",
        title="Memory for LoRA",
        answer=lambda: 2 * _M8.params + 16 * _adapters(),
        unit="B",
        difficulty=2,
        hints=(
            "The adapter of a D × F matrix has r times (D + F) parameters.",
            "A layer has seven matrices, two of them narrower. A frozen parameter takes two bytes.",
        ),
        mistakes=(
            Mistake(
                lambda: 16 * _adapters(),
                "That is the state of the adapters. The frozen model takes memory as well.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: training_state(_M8).total,
                "That is the state for training all weights.",
                slip="wrong-formula-full",
            ),
            Mistake(lambda: _M8.params + 16 * _adapters(), "A frozen weight in bf16 takes two bytes."),
        ),
    ),
    Check(
        key="posttraining.best-split",
        title="Splitting chips with the planner",
        answer=lambda: float(_chosen().winner.rollout_chips),
        unit="chips",
        rel_tol=1e-9,
        difficulty=3,
        hints=(
            "planner.loop describes the work of a step, and planner.posttraining splits the chips.",
            "Ask for the winner with a staleness of at most one update.",
        ),
        mistakes=(
            Mistake(
                lambda: float(_chosen().winner.training_chips),
                "That is how many GPUs train. How many generate?",
            ),
            Mistake(
                lambda: float(_chosen().best("fully asynchronous").rollout_chips),
                "In that split, the staleness exceeds one update.",
            ),
        ),
    ),
    Check(
        key="posttraining.ppo-memory",
        title="Memory of PPO",
        answer=_held,
        unit="B",
        difficulty=2,
        hints=(
            "PPO trains two models and holds two frozen ones.",
            "The four models of the trainer are sharded over 16 GPUs, the engine's copy over two.",
        ),
        mistakes=(
            Mistake(
                lambda: _held() - _M8.params,
                "The engine holds its own copy of the policy, sharded over two GPUs.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: _held(planner.GRPO),
                "That is for GRPO. PPO also has a critic and a reward model.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: _held() - _M8.params + 2 * _M8.params / 16,
                "An engine is sharded over its own two GPUs, not over all 16.",
                slip="wrong-count",
            ),
        ),
    ),
    Check(
        key="posttraining.response-ratio",
        title="Importance weight of a response",
        answer=lambda: (1 / 0.05) ** 2,
        unit="tokens",
        hints=(
            "Variances of independent differences add up.",
            "The standard deviation of a sum of T terms is the square root of T times that of one term.",
        ),
        mistakes=(
            Mistake(
                1 / 20,
                "Standard deviations do not add up, but variances do.",
                slip="wrong-formula-powers",
            ),
        ),
    ),
)

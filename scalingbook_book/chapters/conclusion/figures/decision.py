"""Figure of the deeper page's decision: cost against time per output token, one curve for each degree."""

from scalingbook_book.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, EXPERTS, MATH, NETWORK
from scalingbook_lib import calibrated, models, planner
from scalingbook_lib.inference import ServingEfficiency
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import H200
from scalingbook_lib.models import Transformer

CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 5120,
    "intermediate_size": 27648,
    "num_hidden_layers": 64,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
PROMPT, ANSWER, DEADLINE_S, FIRST_S = 2000, 500, 0.03, 0.5
# What the launch command can express: tensor parallelism and replicas, and no other sharding.
SIMPLE = dict.fromkeys(("pp", "cp", "rows", "attention_dp", "kv_batch", "kv_sequence"), 1)


def model() -> Transformer:
    """The model of that config."""
    return models.from_hf(CONFIG, name="Qwen2.5 32B")


def front(efficiency: ServingEfficiency, **ways: int) -> planner.Front:
    """The ways to serve it on eight H200s, with these degrees if any are given."""
    return planner.serve(
        model(),
        Cluster.of(H200, 8),
        P=PROMPT,
        G=ANSWER,
        ttft_s=FIRST_S,
        policies=("chunked",),
        fixed=SIMPLE | ways,
        efficiency=efficiency,
    )


def deadlines() -> Figure:
    """Which degree of tensor parallelism is cheapest, by how long a user may wait for a token?"""
    real = calibrated.serving(H200)
    found = {ways: front(real, tp=ways) for ways in (8, 4, 2, 1)}
    best = front(real).within(DEADLINE_S)
    return Figure(
        key="conclusion.deadlines",
        alt="Four falling curves of cost against time per output token, for TP=8, 4, 2 and 1. Each "
        "curve is the lowest in its own range, TP=8 on the left and TP=1 on the right. A line marks "
        f"{1000 * DEADLINE_S:.0f} ms.",
        caption="Cost of output tokens against time per token, for four degrees of tensor parallelism. The "
        f"deadline decides which degree is cheapest: at {1000 * DEADLINE_S:.0f} ms, it is "
        f"TP={best.layout.tp}, with {best.cost:.2f} dollars per million tokens. Near a crossing of "
        "two curves, the second-best degree costs only a few cents more.",
        parts=lambda wide: [_curves(found)],
    )


def _curves(found: dict[int, planner.Front]) -> Chart:
    curves = [
        Curve(
            f"TP={ways}",
            [option.itl_s for option in each],
            [option.cost for option in each],
            color=color,
        )
        for (ways, each), color in zip(found.items(), (EXPERTS, MATH, NETWORK, CACHE), strict=True)
    ]
    return Chart(
        x=Scale("time per output token", "s", "log", low=0.007, high=0.12),
        y=Scale("dollars per million tokens", "", "log", low=0.8, high=5.0),
        marks=(*curves, RefLine("deadline", DEADLINE_S)),
    )

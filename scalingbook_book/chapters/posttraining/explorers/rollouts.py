"""Explorers of the long tail of a rollout, and of the split of chips between generation and training."""

from functools import cache

from scalingbook_book.chapters.posttraining.case import ENGINE, LLAMA, MOST
from scalingbook_book.reader.explorers.parts import (
    SWITCHED,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    pluralize,
    sig3,
)
from scalingbook_lib import inference, models, planner
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.planner import Splits
from scalingbook_lib.planner.loops import ASYNCHRONOUS, COLOCATED, ONE_STEP_OFF
from scalingbook_lib.serving import mean_context, refilled_tokens_per_s, rollout, sample_lengths
from scalingbook_lib.units import count, si

ENGINES = {"Llama 3 8B": 2, "Qwen3 32B": 4, "Llama 3 70B": 8}  # chips per engine
_P = 512


def _slots(*, model: str, chip: str, answers: int, mean: int, spread: float) -> View:
    m, degree = models.find(model), ENGINES[model]
    costs = inference.case(m, Cluster.of(chips.find(chip), 8), Layout(tp=degree))
    lengths = sample_lengths(answers, mean, spread, max_tokens=MOST)
    played, rate = rollout(costs, lengths, P=_P), refilled_tokens_per_s(costs, lengths, P=_P, slots=answers)
    half = played.alive(played.seconds / 2)
    times = [played.seconds * k / 60 for k in range(61)]
    chart = Chart(
        Scale("time", "s"),
        Scale("responses running", "", "linear", 0, 1.05 * answers),
        (
            Curve("", times, [played.alive(at) for at in times], 0),
            RefLine("half time", played.seconds / 2),
        ),
    )
    gain = rate / played.tokens_per_s
    more = (
        f"If free slots were refilled, the engine would generate {sig3(gain, 2)} times as many tokens "
        "per second."
        if gain > 1.05
        else "Refilling free slots would not raise the throughput."
    )
    return View(
        f"The last of {count(answers)} responses ends after {si(played.seconds, 's')}. For half of that "
        f"time, at most {pluralize(half, 'response')} {'is' if half == 1 else 'are'} running. {more}",
        (chart,),
        (
            Readout("tokens/s", played.tokens_per_s, "", sig3(played.tokens_per_s)),
            Readout("tokens/s with refilled slots", rate, "", sig3(rate)),
            Readout("tokens of the longest response", max(lengths), "", count(max(lengths))),
            Readout(
                "mean context of a refilled slot",
                mean_context(lengths, _P),
                "",
                count(round(mean_context(lengths, _P))),
            ),
        ),
    )


SLOTS = Explorer(
    key="posttraining.slots",
    title="The long tail of a rollout",
    question="How long does a batch of rollouts wait for its longest response?",
    controls={
        "model": Choice("model", tuple(ENGINES), "Llama 3 70B"),
        "chip": Chips("chip", SWITCHED, "H100"),
        "answers": Slider("responses per engine", 8, 512, 256, "pow2"),
        "mean": Slider("mean response length in tokens", 1024, 16_384, 8192, "pow2"),
        "spread": Slider("spread of the lengths (σ of the log)", 0.0, 1.2, 0.8, step=0.1),
    },
    view=_slots,
)


@cache
def _splits(n: int, answers: int, spread: float) -> Splits:
    asked = planner.loop(answers, P=_P, G=4096, spread=spread, most=MOST)
    return planner.posttraining(LLAMA, Cluster.of(chips.H100, n), ENGINE, asked)


def _split(*, n: int, answers: int, spread: float, staleness: int) -> View:
    found = _splits(n, answers, spread)
    fresh = [s for s in found if s.staleness <= staleness]
    best = min(fresh, key=lambda s: s.total_s)
    curves = []
    for color, way in enumerate((ONE_STEP_OFF, ASYNCHRONOUS)):
        splits = sorted((s for s in found if s.way == way), key=lambda s: s.rollout_chips)
        curves.append(Curve(way, [s.rollout_chips for s in splits], [s.total_s for s in splits], color))
    colocated = found.best(COLOCATED)
    chart = Chart(
        Scale("chips that generate", "", "linear", 0, n),
        Scale("time per step", "s", "log"),
        (
            *curves,
            RefLine(COLOCATED, colocated.total_s, axis="y"),
            Points("", [best.rollout_chips], [best.total_s], [si(best.total_s, "s")], 2),
        ),
    )
    old = "on-policy" if best.staleness == 0 else f"staleness at most {pluralize(best.staleness, 'update')}"
    speedup = colocated.total_s / best.total_s
    pools = f"all {n} chips" if best.way == COLOCATED else f"{best.rollout_chips} of {n} chips"
    return View(
        f"The fastest design is {best.way}: {pools} generate, and a step takes "
        f"{si(best.total_s, 's')} ({old}).",
        (chart,),
        (
            Readout("colocated", colocated.total_s, "s", si(colocated.total_s, "s")),
            Readout.percent("rollouts, fraction of the colocated step", colocated.rollout_share),
            Readout("fastest design", best.total_s, "s", si(best.total_s, "s")),
            Readout("speedup", speedup, "", f"{speedup:.2f}"),
        ),
    )


SPLIT = Explorer(
    key="posttraining.split",
    title="Colocated or asynchronous RL: splitting the chips",
    question="How should the chips be divided between generation and training?",
    controls={
        "n": Slider("H100s, eight per engine", 32, 128, 64, "pow2"),
        "answers": Slider("responses per step", 128, 512, 512, "pow2"),
        "spread": Slider("spread of the lengths (σ of the log)", 0.0, 1.2, 0.8, step=0.4),
        "staleness": Slider("allowed staleness in updates", 0, 4, 4),
    },
    view=_split,
)

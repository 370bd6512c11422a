"""How does a batch of answers end, and how many chips should write?"""

from functools import cache

from scalingbook_book.chapters.posttraining.case import ENGINE, LLAMA, MOST
from scalingbook_book.reader.explorers.parts import (
    SWITCHED,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
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
from scalingbook_lib.planner.loops import ONE_STALE, REFILLED, TOGETHER
from scalingbook_lib.serving import mean_context, refilled_tokens_per_s, rollout, sample_lengths
from scalingbook_lib.units import count, si

ENGINES = {"LLaMA-3 8B": 2, "Qwen3 32B": 4, "LLaMA-3 70B": 8}  # chips of one engine
_P = 512


def _slots(*, model: str, chip: str, answers: int, mean: int, spread: float) -> View:
    m, ways = models.find(model), ENGINES[model]
    costs = inference.case(m, Cluster.of(chips.find(chip), 8), Layout(tp=ways))
    lengths = sample_lengths(answers, mean, spread, max_tokens=MOST)
    played, rate = rollout(costs, lengths, P=_P), refilled_tokens_per_s(costs, lengths, P=_P, slots=answers)
    half = played.alive(played.seconds / 2)
    times = [played.seconds * k / 60 for k in range(61)]
    chart = Chart(
        Scale("time", "s"),
        Scale("answers being written", "", "linear", 0, 1.05 * answers),
        (
            Curve("", times, [played.alive(at) for at in times], 0),
            RefLine("half of the time", played.seconds / 2),
        ),
    )
    gain = rate / played.tokens_per_s
    return View(
        f"The last of {count(answers)} answers ends after {si(played.seconds, 's')}; for half of that time "
        f"at most {pluralize(half, 'answer')} {'is' if half == 1 else 'are'} left. Refilled slots write "
        f"{sig3(gain, 2)} times as many tokens a second.",
        (chart,),
        (
            Readout("tokens a second", played.tokens_per_s, "", si(played.tokens_per_s)),
            Readout("with refilled slots", rate, "", si(rate)),
            Readout("longest answer", max(lengths), "", count(max(lengths))),
            Readout(
                "mean context of a full slot",
                mean_context(lengths, _P),
                "",
                count(round(mean_context(lengths, _P))),
            ),
        ),
    )


SLOTS = Explorer(
    key="posttraining.slots",
    title="Slots that empty",
    question="How long does a batch of answers wait for its longest?",
    controls={
        "model": Choice("model", tuple(ENGINES), "LLaMA-3 70B"),
        "chip": Chips("chip", SWITCHED, "H100"),
        "answers": Slider("answers of one engine", 8, 512, 256, "pow2"),
        "mean": Slider("tokens in the mean", 1024, 16_384, 8192, "pow2"),
        "spread": Slider("spread of the lengths", 0.0, 1.2, 0.8, step=0.1),
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
    for color, way in enumerate((ONE_STALE, REFILLED)):
        ways = sorted((s for s in found if s.way == way), key=lambda s: s.writing)
        curves.append(Curve(way, [s.writing for s in ways], [s.total_s for s in ways], color))
    together = found.best(TOGETHER)
    chart = Chart(
        Scale("chips that write", "", "linear", 0, n),
        Scale("a step", "s", "log"),
        (*curves, RefLine(TOGETHER, together.total_s, axis="y")),
    )
    old = "fresh" if best.staleness == 0 else f"at most {pluralize(best.staleness, 'update')} old"
    who = f"all {n} chips" if best.way == TOGETHER else f"{best.writing} of {n} chips"
    return View(
        f"Fastest is {best.way}: {who} write, {si(best.total_s, 's')} a step, answers {old}.",
        (chart,),
        (
            Readout("together", together.total_s, "s", si(together.total_s, "s")),
            Readout.percent("of it, rollouts", together.generating),
            Readout("fastest", best.total_s, "s", si(best.total_s, "s")),
            Readout("gain", together.total_s / best.total_s, "", f"{together.total_s / best.total_s:.2f}"),
        ),
    )


SPLIT = Explorer(
    key="posttraining.split",
    title="Who writes, who trains",
    question="How should chips be shared between rollouts and training?",
    controls={
        "n": Slider("H100, eight to an engine", 32, 128, 64, "pow2"),
        "answers": Slider("answers of a step", 128, 512, 512, "pow2"),
        "spread": Slider("spread of the lengths", 0.0, 1.2, 0.8, step=0.4),
        "staleness": Slider("updates that an answer may be old", 0, 4, 4),
    },
    view=_split,
)

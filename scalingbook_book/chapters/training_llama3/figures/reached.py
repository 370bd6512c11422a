"""Figures of the fraction of the peak that remains, from a plan's ceiling to a run with failures."""

from scalingbook_book.chapters.training_llama3.figures.plans import COPIES, CUBE, LLAMA, PLANS, SEQUENCES, T
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import Part, key, strip
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import calibrated, rules, training
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.units import percent, si
from scalingbook_lib.words import pluralize

BETWEEN = LLAMA3_INTERRUPTIONS.days * 86400 / LLAMA3_INTERRUPTIONS.unexpected
SAVE, RESTART = 60.0, 600.0  # assumed: the run pauses for a checkpoint, and after a failure


def three_mfus() -> Figure:
    """How much is lost between the peak rate and a whole run?"""
    ideal, machine = PLANS["no TP, CP 4"]
    real = calibrated.training(V5P)
    ceiling = training.step(LLAMA, machine, ideal, batch=SEQUENCES, T=T).mfu
    compiled = training.step(LLAMA, CUBE, COPIES, batch=SEQUENCES, T=T).mfu
    likely = training.step(LLAMA, CUBE, COPIES, batch=SEQUENCES, T=T, efficiency=real).mfu
    between = BETWEEN * LLAMA3_INTERRUPTIONS.chips / CUBE.chips
    kept = likely * rules.goodput(SAVE, between, RESTART).share
    stairs = {
        "peak rate": 1.0,
        "best plan at peak rates (ceiling)": ceiling,
        "plan as compiled, with 16 replicas": compiled,
        "real chips: matmuls, memory and links below peak": likely,
        f"with a failure every {between / 3600:.0f} hours": kept,
    }
    said = "; ".join(f"{name} {percent(share)}" for name, share in stairs.items())
    return Figure(
        key="training_llama3.three_mfus",
        alt=f"Five bars, each shorter than the one before. {said}.",
        caption="The useful fraction of the peak, from the ideal plan to the real run: "
        f"{', '.join(percent(share) for share in stairs.values())}. Always state which MFU you mean. "
        "(Llama 3 70B on 4,096 TPU v5p, each of which fails as often as one of Meta's GPUs; a "
        "minute per checkpoint.)",
        parts=lambda wide: [_stairs(wide, stairs)],
    )


def _stairs(wide: float, stairs: dict[str, float]) -> Sketch:
    most = wide - 56
    shapes: list[Shape] = []
    for k, (name, share) in enumerate(stairs.items()):
        y = 20.0 + 50 * k
        shapes.append(Words(x=2, y=y - 5, text=name, align="start"))
        shapes.append(Area(x=2, y=y, wide=most, high=20, color=None, shade=0.04))
        shapes.append(Area(x=2, y=y, wide=most * share, high=20, color=MATH, shade=0.5))
        shapes.append(Words(x=wide - 4, y=y + 15, text=percent(share), align="end", bold=True))
    return Sketch(wide, 12 + 50.0 * len(stairs), shapes)


def failures() -> Figure:
    """How often should a run save a checkpoint?"""
    best = rules.goodput(SAVE, BETWEEN, RESTART)
    return Figure(
        key="training_llama3.failures",
        alt="A timeline: work, save, work, save, work, then a failure; the work since the last "
        "checkpoint is lost, and a restart follows. Below it a curve of goodput over the checkpoint "
        f"interval, highest at {best.best_s / 60:.0f} minutes, {percent(best.share)}.",
        caption="Goodput against the interval between checkpoints. Frequent checkpoints cost time, and "
        f"infrequent ones cost lost work. With a failure every {BETWEEN / 3600:.1f} hours, "
        f"{pluralize(SAVE / 60, 'minute')} to save and {pluralize(RESTART / 60, 'minute')} to "
        f"restart, a checkpoint every {best.best_s / 60:.0f} minutes is best, and goodput is "
        f"{percent(best.share)}. (Timeline not to scale.)",
        parts=lambda wide: [_cycle(wide), _curve(best)],
    )


def _cycle(wide: float) -> Sketch:
    """Not to scale: what a failure costs."""
    sizes = (("work", 3, MATH), ("", 0.4, MEMORY), ("work", 3, MATH), ("", 0.4, MEMORY), ("lost", 1.6, IDLE))
    parts = [Part(*each) for each in (*sizes, ("restart", 2.1, NETWORK), ("work", 1.5, MATH))]
    stop = 2 + (wide - 4) * sum(part.size for part in parts[:5]) / sum(part.size for part in parts)
    swatches, end = key(wide, 74, {MATH: "progress", MEMORY: "saving", IDLE: "lost work", NETWORK: "restart"})
    shapes: list[Shape] = [
        Words(x=stop, y=13, text="failure"),
        Arrow(x0=stop, y0=18, x1=stop, y1=30),
        *strip(2, 32, wide - 4, 30, parts),
        *swatches,
    ]
    return Sketch(wide, end, shapes)


def _curve(best: rules.Goodput) -> Chart:
    minutes = [2.0 ** (e / 4) for e in range(4, 29)]
    shares = [100 * rules.goodput(SAVE, BETWEEN, RESTART, 60 * each).share for each in minutes]
    marks = (
        Curve("", minutes, shares, 0),
        Points("", [best.best_s / 60], [100 * best.share], [f"{si(best.best_s / 60)} min"], 1),
    )
    return Chart(
        Scale("minutes between checkpoints", "", "pow2"), Scale("goodput", "%", "linear", 0, 100), marks
    )

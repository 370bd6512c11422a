"""How often large machines stop, how often to save, and what is lost where."""

from scalingbook_book.chapters.posttraining.case import CHIP_S, LARGE
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, Points, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_lib import rules
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS
from scalingbook_lib.training import reliability
from scalingbook_lib.units import percent, si

PUBLISHED = {  # chips, hours between stops: Meta 2410.21680 (A100), 2407.21783, and 2602.00277
    "RSC": (1024, 7.9),
    "LLaMA 3": (LLAMA3_INTERRUPTIONS.chips, LLAMA3_INTERRUPTIONS.mtbf_s / 3600),
    "FT-HSDP": (100_000, 0.3),
}
WAYS = {  # seconds of a stand-still to save, and of a restart
    "save 60 s, back 600 s": (60.0, 600.0),
    "save 0.5 s, back 600 s": (0.5, 600.0),
    "save 0.5 s, back 60 s": (0.5, 60.0),
}


def stops() -> Figure:
    """How does the time between stops fall with the chips?"""
    hours = {n: CHIP_S / n / 3600 for n in (256, 1024, 4096, 16_384, 65_536, 262_144)}
    at, known = CHIP_S / LARGE / 60, list(PUBLISHED.values())
    chart = Chart(
        Scale("chips", "", "pow2", 256, 400_000),
        Scale("hours between stops", "", "log", 0.1, 500),
        (
            Curve("as LLaMA 3's", list(hours), list(hours.values()), 0),
            Points("", [n for n, _ in known], [h for _, h in known], list(PUBLISHED), 1),
        ),
    )
    return Figure(
        key="posttraining.stops",
        alt=f"A falling straight line on logarithmic axes, from {hours[256]:.0f} hours at 256 chips to {60 * hours[262_144]:.0f} minutes at 262,144; "
        "two published points lie below it.",
        caption=f"Twice the chips, half the time. At LLaMA 3's rate {LARGE:,} chips stop every {at:.0f} minutes. Two other published machines stop more often: "
        "every count has causes of its own.",
        parts=lambda wide: [chart],
    )


def interval() -> Figure:
    """How far off is Young's rule where stops are frequent?"""
    save, restart, between = 60.0, 600.0, CHIP_S / LARGE
    first, exact = rules.goodput(save, between, restart), reliability.exact(save, between, restart)
    minutes = [2.0 ** (e / 4) for e in range(4, 25)]
    young = [100 * rules.goodput(save, between, restart, 60 * m).share for m in minutes]
    daly = [100 * reliability.exact(save, between, restart, 60 * m).share for m in minutes]
    marks = (
        Curve("Young", minutes, young, 1, dashed=True),
        Curve("exact", minutes, daly, 0),
        Points("", [exact.best_s / 60], [100 * exact.share], [percent(exact.share)], 0),
    )
    chart = Chart(
        Scale("minutes between checkpoints", "", "pow2"), Scale("counts", "%", "linear", 0, 70), marks
    )
    return Figure(
        key="posttraining.interval",
        alt=f"The share of time that counts against the interval: two hills. Young's is highest at {first.best_s / 60:.1f} minutes with {percent(first.share)}, "
        f"the exact one at {exact.best_s / 60:.1f} with {percent(exact.share)}.",
        caption=f"The best interval hardly differs, {si(first.best_s, 's')} and {si(exact.best_s, 's')}; the share does. "
        f"({LARGE:,} chips, a stop every {between / 60:.0f} minutes, a minute to save, ten to restart.)",
        parts=lambda wide: [chart],
    )


def ladder() -> Figure:
    """What does a faster disk gain, and a faster restart?"""
    between = CHIP_S / LARGE
    best = {name: reliability.exact(save, between, restart) for name, (save, restart) in WAYS.items()}
    parts: dict[str, list[float]] = {"counts": [], "saving": [], "done again": [], "restarting": []}
    for name, found in best.items():
        save, restart = WAYS[name]
        saving, back = found.share * save / found.every_s, 1 - reliability.restarts_leave(between, restart)
        row = (found.share, saving, 1 - found.share - saving - back, back)
        for part, share in zip(parts, row, strict=True):
            parts[part].append(100 * share)
    series = [Series(part, values, color) for color, (part, values) in enumerate(parts.items())]
    said = "; ".join(f"{name}: {percent(found.share)} counts" for name, found in best.items())
    bars = Bars(Scale("of all time", "%", "linear", 0, 115), list(best), series, stacked=True)
    return Figure(
        key="posttraining.ladder",
        alt=f"Three stacked bars of where the time goes. {said}.",
        caption=f"Where nobody waits for the save, getting back is most of what is lost. ({LARGE:,} chips. {said}.)",
        parts=lambda wide: [bars],
    )

"""Figures of fault tolerance: MTBF, the checkpoint interval, and where time is lost."""

from scalingbook_book.chapters.posttraining.case import CHIP_S, LARGE
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, Points, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_lib import rules
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS
from scalingbook_lib.training import reliability
from scalingbook_lib.units import percent, si

PUBLISHED = {  # chips, MTBF in hours: Meta 2410.21680 (A100), 2407.21783, and 2602.00277
    "RSC (A100)": (1024, 7.9),
    "Llama 3": (LLAMA3_INTERRUPTIONS.chips, LLAMA3_INTERRUPTIONS.mtbf_s / 3600),
    "FT-HSDP": (100_000, 0.3),
}
WAYS = {  # seconds for which the run stops to save, and of a restart
    "save 60 s, restart 600 s": (60.0, 600.0),
    "save 0.5 s, restart 600 s": (0.5, 600.0),
    "save 0.5 s, restart 60 s": (0.5, 60.0),
}


def stops() -> Figure:
    """The MTBF against the number of chips, with three published clusters."""
    hours = {n: CHIP_S / n / 3600 for n in (256, 1024, 4096, 16_384, 65_536, 262_144)}
    at, known = CHIP_S / LARGE / 60, list(PUBLISHED.values())
    chart = Chart(
        Scale("chips", "", "pow2", 256, 400_000),
        Scale("MTBF", "hours", "log", 0.1, 500),
        (
            Curve("at Llama 3's rate", list(hours), list(hours.values()), 0),
            Points("", [n for n, _ in known], [h for _, h in known], list(PUBLISHED), 1),
        ),
    )
    return Figure(
        key="posttraining.stops",
        alt=f"MTBF against the number of chips, on logarithmic axes: a falling straight line, from {hours[256]:.0f} hours for 256 chips to {60 * hours[262_144]:.0f} minutes for 262,144. "
        "Two published clusters lie below it.",
        caption="MTBF against the number of chips. Doubling the number of chips halves the MTBF. "
        f"At Llama 3's rate, a run on {LARGE:,} chips fails every {at:.0f} minutes. Two "
        "other published clusters fail more often, because each report counts different causes.",
        parts=lambda wide: [chart],
    )


def interval() -> Figure:
    """Goodput against the checkpoint interval, by Young's estimate and by the exact formula."""
    save, restart, between = 60.0, 600.0, CHIP_S / LARGE
    first, exact = rules.goodput(save, between, restart), reliability.exact(save, between, restart)
    minutes = [2.0 ** (e / 4) for e in range(4, 25)]
    young = [100 * rules.goodput(save, between, restart, 60 * m).share for m in minutes]
    daly = [100 * reliability.exact(save, between, restart, 60 * m).share for m in minutes]
    marks = (
        Curve("first-order", minutes, young, 1, dashed=True),
        Curve("exact", minutes, daly, 0),
        Points("", [exact.best_s / 60], [100 * exact.share], [percent(exact.share)], 0),
    )
    chart = Chart(
        Scale("minutes between checkpoints", "", "pow2"), Scale("goodput", "%", "linear", 0, 70), marks
    )
    return Figure(
        key="posttraining.interval",
        alt=f"Goodput against the checkpoint interval: two curves, each with a maximum. That of the first-order estimate is {percent(first.share)}, at {first.best_s / 60:.1f} minutes; "
        f"the exact one is {percent(exact.share)}, at {exact.best_s / 60:.1f} minutes.",
        caption="Goodput against the checkpoint interval, by the first-order estimate behind Young's rule and by "
        "the exact formula. The two "
        f"agree on the best interval, {si(first.best_s, 's')} and {si(exact.best_s, 's')}, but not "
        f"on the goodput. ({LARGE:,} chips, a failure every {between / 60:.0f} minutes, one minute "
        "to save, ten to restart.)",
        parts=lambda wide: [chart],
    )


def ladder() -> Figure:
    """Where the time goes, with slow and fast checkpoints and restarts."""
    between = CHIP_S / LARGE
    best = {name: reliability.exact(save, between, restart) for name, (save, restart) in WAYS.items()}
    parts: dict[str, list[float]] = {"goodput": [], "checkpoints": [], "lost work": [], "restarts": []}
    for name, found in best.items():
        save, restart = WAYS[name]
        saving, back = found.share * save / found.every_s, 1 - reliability.restart_bound(between, restart)
        row = (found.share, saving, 1 - found.share - saving - back, back)
        for part, share in zip(parts, row, strict=True):
            parts[part].append(100 * share)
    series = [Series(part, values, color) for color, (part, values) in enumerate(parts.items())]
    said = "; ".join(f"{name}: goodput {percent(found.share)}" for name, found in best.items())
    bars = Bars(Scale("share of the time", "%", "linear", 0, 105), list(best), series, stacked=True)
    return Figure(
        key="posttraining.ladder",
        alt=f"Three stacked bars that divide the time of a run into goodput, checkpoints, lost work and restarts. {said}.",
        caption=f"How a run on {LARGE:,} chips spends its time, if chips fail at Llama 3's rate. Once "
        "checkpoints are fast, restarts cause most of the loss. (Each run uses its best checkpoint interval.)",
        parts=lambda wide: [bars],
    )

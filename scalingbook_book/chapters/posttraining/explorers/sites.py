"""Can sites far apart train one model? Bytes a sync against the line between them."""

from scalingbook_book.reader.explorers.parts import (
    Chart,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
)
from scalingbook_lib.units import percent, si

_EVERY = [2.0**e for e in range(11)]


def sync_s(billions: float, sites: int, bits: int, gigabits: float) -> float:
    """Both halves of an AllReduce over q sites: 2 P bits (q - 1) / q over the line."""
    return 2 * billions * bits * (sites - 1) / sites / gigabits


def _sites(*, billions: float, sites: int, every: int, bits: int, gigabits: float, step: float) -> View:
    wait = sync_s(billions, sites, bits, gigabits)
    stopped = {h: wait / (wait + h * step) for h in _EVERY}
    now = wait / (wait + every * step)
    hidden = wait <= every * step
    chart = Chart(
        Scale("local steps between syncs", "", "pow2"),
        Scale("of the time, in syncs", "%", "linear", 0, 100),
        (
            Curve("waited for", _EVERY, [100 * share for share in stopped.values()], 0),
            RefLine("hidden from here", max(min(wait / step, _EVERY[-1]), 1)),
            Points("", [every], [100 * now], [percent(now)], 1),
        ),
    )
    can = "can be hidden behind the steps" if hidden else "takes longer than the steps between"
    return View(
        f"A sync of {si(wait * gigabits * 1e9 / 8, 'B')} takes {si(wait, 's')} and {can}.",
        (chart,),
        (
            Readout("a sync", wait, "s", si(wait, "s")),
            Readout(
                "line that hides it",
                wait * gigabits / (every * step),
                "",
                f"{wait * gigabits / (every * step):.3g} Gb/s",
            ),
            Readout.percent("of the time, if waited for", now),
        ),
    )


SITES = Explorer(
    key="posttraining.sites",
    title="Sites far apart",
    question="How seldom must sites exchange what they learned?",
    controls={
        "billions": Slider("billions of parameters", 1.0, 400.0, 12.0, "log"),
        "sites": Slider("sites", 2, 16, 4),
        "every": Slider("local steps between syncs", 1, 1024, 128, "pow2"),
        "bits": Slider("bits a parameter", 4, 32, 16, "pow2"),
        "gigabits": Slider("line of a site", 0.5, 400.0, 2.0, "log", unit="Gb/s"),
        "step": Slider("seconds of a step", 1.0, 60.0, 5.0, "log"),
    },
    view=_sites,
)

"""Explorer of local SGD over slow links: the time of a sync against the local steps that hide it."""

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
    """Seconds of an AllReduce over q sites: 2 P bits (q - 1) / q over the bandwidth of the link."""
    return 2 * billions * bits * (sites - 1) / sites / gigabits


def _sites(*, billions: float, sites: int, every: int, bits: int, gigabits: float, step: float) -> View:
    wait = sync_s(billions, sites, bits, gigabits)
    stopped = {h: wait / (wait + h * step) for h in _EVERY}
    now = wait / (wait + every * step)
    hidden = wait <= every * step
    chart = Chart(
        Scale("local steps between syncs", "", "pow2"),
        Scale("time spent in syncs", "%", "linear", 0, 100),
        (
            Curve("if exposed", _EVERY, [100 * share for share in stopped.values()], 0),
            RefLine("can be hidden", max(min(wait / step, _EVERY[-1]), 1)),
            Points("", [every], [100 * now], [percent(now)], 1),
        ),
    )
    can = "which can be hidden behind" if hidden else "longer than"
    return View(
        f"A sync moves {si(wait * gigabits * 1e9 / 8, 'B')} per site. It takes {si(wait, 's')}, {can} "
        "the local steps between two syncs.",
        (chart,),
        (
            Readout("time of a sync", wait, "s", si(wait, "s")),
            Readout(
                "bandwidth that hides it",
                wait * gigabits / (every * step),
                "",
                f"{wait * gigabits / (every * step):.3g} Gb/s",
            ),
            Readout.percent("fraction of the time, if exposed", now),
        ),
    )


SITES = Explorer(
    key="posttraining.sites",
    title="Local SGD between distant sites",
    question="How many local steps hide a sync between the sites?",
    controls={
        "billions": Slider("parameters in billions", 1.0, 400.0, 12.0, "log"),
        "sites": Slider("sites", 2, 16, 4),
        "every": Slider("local steps between syncs", 1, 1024, 128, "pow2"),
        "bits": Slider("bits per parameter", 4, 32, 16, "pow2"),
        "gigabits": Slider("bandwidth of a site", 0.5, 400.0, 2.0, "log", unit="Gb/s"),
        "step": Slider("seconds per step", 1.0, 60.0, 5.0, "log"),
    },
    view=_sites,
)

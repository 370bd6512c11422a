"""Explorers of the goodput of a cluster with failures, and of the number of spares that it needs."""

from math import exp, factorial

from scalingbook_book.reader.explorers.parts import (
    Chart,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Switch,
    View,
    pluralize,
    sig3,
)
from scalingbook_lib.training import reliability
from scalingbook_lib.training.reliability import CheckpointTier
from scalingbook_lib.units import percent, si

_YEAR_S = 365.25 * 86400
_SIZES = [2.0**e for e in range(8, 19)]
_PEERS = CheckpointTier("peer memory", 0.05, 30.0, 0.9)  # assumed: in nine failures of ten, the peer survives


def _share(n: float, years: float, save: float, restart: float, peers: bool) -> float:
    between = years * _YEAR_S / n
    if not peers:
        return reliability.exact(save, between, restart).share
    rest = CheckpointTier("storage", save, restart, 1 - _PEERS.serves)
    return reliability.multi_tier((_PEERS, rest), between)


def _ladder(*, n: int, years: float, save: float, restart: float, peers: bool) -> View:
    between = years * _YEAR_S / n
    now = _share(n, years, save, restart, peers)
    faster = _share(n, years, save / 2, restart, peers), _share(n, years, save, restart / 2, peers)
    chart = Chart(
        Scale("chips", "", "pow2"),
        Scale("goodput", "%", "linear", 0, 100),
        (
            Curve("", _SIZES, [100 * _share(s, years, save, restart, peers) for s in _SIZES], 0),
            Points("", [n], [100 * now], [percent(now)], 1),
        ),
    )
    best, other = ("save time", "restart time") if faster[0] > faster[1] else ("restart time", "save time")
    return View(
        f"With {n:,} chips, a failure occurs every {si(between, 's')}, and the goodput is {percent(now)}. "
        f"Halving the {best} would raise it more than halving the {other}.",
        (chart,),
        (
            Readout("MTBF", between, "s"),
            Readout.percent("goodput", now, 3),
            Readout.percent("with half the save time", faster[0], 3),
            Readout.percent("with half the restart time", faster[1], 3),
        ),
    )


LADDER = Explorer(
    key="posttraining.ladder",
    title="Goodput: checkpoints or restarts?",
    question="What is the goodput of a run, and would faster checkpoints or faster restarts raise it more?",
    controls={
        "n": Slider("chips", 256, 262_144, 16_384, "pow2"),
        "years": Slider("MTBF of one chip in years", 1.0, 20.0, 5.8, "log"),
        "save": Slider("seconds to save", 0.5, 300.0, 60.0, "log"),
        "restart": Slider("seconds to restart", 15.0, 1800.0, 600.0, "log"),
        "peers": Switch("restore 9 of 10 from peer memory"),
    },
    view=_ladder,
)


def _spares(*, stops: float, days: float, unit: int, enough: float) -> View:
    found = reliability.spares(stops, days, enough / 100)
    most = found.spares + 4
    row = range(most)
    chances = [100 * exp(-found.out) * found.out**k / factorial(k) for k in row]
    chart = Chart(
        Scale("units out of service", ""),
        Scale("fraction of the time", "%"),
        (Curve("exactly this many", [*row], chances, 0), RefLine("spares", found.spares)),
    )
    return View(
        f"On average, {sig3(found.out)} units are out of service. {pluralize(found.spares, 'spare unit')} "
        f"({pluralize(found.spares * unit, 'chip')}) {'is' if found.spares == 1 else 'are'} enough for "
        f"{enough:g}% of the time.",
        (chart,),
        (
            Readout("units out on average", found.out, "", sig3(found.out)),
            Readout("spare units", found.spares, "", str(found.spares)),
            Readout("spare chips", found.spares * unit, "", f"{found.spares * unit:,}"),
        ),
    )


SPARES = Explorer(
    key="posttraining.spares",
    title="Number of hot spares",
    question="How many units are out for repair, and how many spares are enough?",
    controls={
        "stops": Slider("failures per day", 0.1, 20.0, 7.8, "log"),
        "days": Slider("repair time in days", 0.1, 4.0, 2.0, "log"),
        "unit": Slider("chips per unit", 1, 64, 8, "pow2"),
        "enough": Slider("spare available", 90.0, 99.9, 99.0, unit="%", step=0.1),
    },
    view=_spares,
)

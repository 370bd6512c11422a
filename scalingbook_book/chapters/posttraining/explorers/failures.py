"""What share of the time counts on a machine that stops, and how many spares does it need?"""

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
from scalingbook_lib.training.reliability import Tier
from scalingbook_lib.units import percent, si

_YEAR_S = 365.25 * 86400
_SIZES = [2.0**e for e in range(8, 19)]
_PEERS = Tier("memory of peers", 0.05, 30.0, 0.9)  # assumed: nine stops of ten leave the peer's copy


def _share(n: float, years: float, save: float, restart: float, peers: bool) -> float:
    between = years * _YEAR_S / n
    if not peers:
        return reliability.exact(save, between, restart).share
    rest = Tier("storage", save, restart, 1 - _PEERS.serves)
    return reliability.ladder((_PEERS, rest), between)


def _ladder(*, n: int, years: float, save: float, restart: float, peers: bool) -> View:
    between = years * _YEAR_S / n
    now = _share(n, years, save, restart, peers)
    faster = _share(n, years, save / 2, restart, peers), _share(n, years, save, restart / 2, peers)
    chart = Chart(
        Scale("chips", "", "pow2"),
        Scale("counts", "%", "linear", 0, 100),
        (
            Curve("", _SIZES, [100 * _share(s, years, save, restart, peers) for s in _SIZES], 0),
            Points("", [n], [100 * now], [percent(now)], 1),
        ),
    )
    best = "a save" if faster[0] > faster[1] else "a restart"
    return View(
        f"{n:,} chips stop every {si(between, 's')}, and {percent(now)} of the time counts. "
        f"More is won by halving {best}.",
        (chart,),
        (
            Readout("between stops", between, "s", si(between, "s")),
            Readout.percent("counts", now, 3),
            Readout.percent("with half the save", faster[0], 3),
            Readout.percent("with half the restart", faster[1], 3),
        ),
    )


LADDER = Explorer(
    key="posttraining.ladder",
    title="What a stop costs",
    question="Which share of the time counts, and what would raise it?",
    controls={
        "n": Slider("chips", 256, 262_144, 16_384, "pow2"),
        "years": Slider("years of a chip between stops", 1.0, 20.0, 5.8, "log"),
        "save": Slider("seconds to save", 0.5, 300.0, 60.0, "log"),
        "restart": Slider("seconds to restart", 15.0, 1800.0, 600.0, "log"),
        "peers": Switch("nine stops of ten served from memory of peers"),
    },
    view=_ladder,
)


def _spares(*, stops: float, days: float, unit: int, enough: float) -> View:
    found = reliability.spares(stops, days, enough / 100)
    most = found.spares + 4
    row = range(most)
    chances = [100 * exp(-found.out) * found.out**k / factorial(k) for k in row]
    chart = Chart(
        Scale("units out at once", ""),
        Scale("of the time", "%"),
        (Curve("so many are out", [*row], chances, 0), RefLine("spares", found.spares)),
    )
    return View(
        f"{sig3(found.out)} units are out on average; {pluralize(found.spares, 'spare')} suffice "
        f"{enough:g}% of the time, {pluralize(found.spares * unit, 'chip')}.",
        (chart,),
        (
            Readout("out on average", found.out, "", sig3(found.out)),
            Readout("spares", found.spares, "", str(found.spares)),
            Readout("spare chips", found.spares * unit, "", f"{found.spares * unit:,}"),
        ),
    )


SPARES = Explorer(
    key="posttraining.spares",
    title="How many spares",
    question="How many units are being repaired, and how many spares are enough?",
    controls={
        "stops": Slider("stops a day", 0.1, 20.0, 7.8, "log"),
        "days": Slider("days of a repair", 0.1, 4.0, 2.0, "log"),
        "unit": Slider("chips that go out together", 1, 64, 8, "pow2"),
        "enough": Slider("of the time", 90.0, 99.9, 99.0, unit="%", step=0.1),
    },
    view=_spares,
)

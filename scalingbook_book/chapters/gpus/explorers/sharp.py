"""Explorer of the AllReduce speedup of in-network reduction, in theory and measured, by number of GPUs."""

from collections.abc import Sequence

from scalingbook_book.reader.explorers.parts import (
    SWITCHED,
    Chart,
    Chips,
    Curve,
    Explorer,
    Mark,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
)
from scalingbook_lib import collectives
from scalingbook_lib.evidence.measured import RUNS
from scalingbook_lib.machines import Chip, Cluster, chips
from scalingbook_lib.units import binary, count, si

_AT = 2**33  # bytes: the one size at which the number of GPUs was swept, with and without


def _sharp(*, chip: str, n: int, nbytes: int) -> View:
    on = chips.find(chip)
    most, asked = on.domain_chips or 2, n
    n = min(asked, most)
    sums = Cluster.of(on, n).levels[0].reduces
    ns = list(range(2, most + 1))
    rings, switched = (
        [collectives.all_reduce(nbytes, *Cluster.of(on, m).levels, in_switch=once) for m in ns]
        for once in (False, sums)
    )
    ring, switch = rings[n - 2], switched[n - 2]
    seen = _seen(on)
    return View(
        _beyond(on, asked) + _verdict(on, n, nbytes, ring=ring, switch=switch, seen=seen),
        (
            _gains(ns, n, rings, switched, seen),
            _rates(on, ns, n, nbytes=nbytes, rings=rings, switched=switched, seen=seen),
        ),
        (
            Readout("GPUs", n),
            Readout("ring", ring.total_s, "s"),
            Readout("in-network" if sums else "no in-network reduction", switch.total_s, "s"),
            Readout("gain", ring.total_s / switch.total_s, "×"),
            *_measured_readouts(seen, n),
        ),
        columns=2,
    )


# What was measured


def _seen(chip: Chip) -> dict[int, tuple[float, float]]:
    """By the number of GPUs: seconds of 8 GiB with the GPUs summing, and as NCCL chose by itself."""
    alike = [
        r for r in RUNS if r.chip.name == chip.name and r.collective == "all-reduce" and r.sizes == (_AT,)
    ]
    told = {run.n: run.microseconds[0] / 1e6 for run in alike if "NVLS_ENABLE=0" in run.algorithm}
    chosen = {run.n: run.microseconds[0] / 1e6 for run in alike if "NVLS_ENABLE=0" not in run.algorithm}
    return {n: (told[n], chosen[n]) for n in told if n in chosen}


def _measured_readouts(seen: dict[int, tuple[float, float]], n: int) -> list[Readout]:
    if n not in seen:
        return []
    told, chosen = seen[n]
    return [
        Readout("measured, 8 GiB: ring", told, "s"),
        Readout("measured, NCCL's choice", chosen, "s"),
        Readout("measured gain", told / chosen, "×"),
    ]


# Charts over the number of GPUs


def _gains(
    ns: Sequence[int],
    n: int,
    rings: Sequence[collectives.Transfer],
    switched: Sequence[collectives.Transfer],
    seen: dict[int, tuple[float, float]],
) -> Chart:
    gains = [a.total_s / b.total_s for a, b in zip(rings, switched, strict=True)]
    marks: list[Mark] = [RefLine("no gain", 1, axis="y"), Curve("in theory", ns, gains, 0)]
    if seen:
        marks.append(
            Points("measured, 8 GiB", list(seen), [told / chosen for told, chosen in seen.values()], color=1)
        )
    marks.append(Points("", [n], [gains[n - 2]], [f"{count(gains[n - 2])} ×"], 0))
    return Chart(
        Scale("GPUs", "", "linear", 1, max(ns) + 1),
        Scale("speedup of an AllReduce", "×", low=0, high=2.2),
        marks,
        "Speedup from in-network reduction",
    )


def _rates(
    chip: Chip,
    ns: Sequence[int],
    n: int,
    *,
    nbytes: float,
    rings: Sequence[collectives.Transfer],
    switched: Sequence[collectives.Transfer],
    seen: dict[int, tuple[float, float]],
) -> Chart:
    marks: list[Mark] = [
        RefLine("all links of a GPU", chip.domain_bytes_per_s(), axis="y"),
        Curve("ring", ns, [_bus(nbytes, m, t.total_s) for m, t in zip(ns, rings, strict=True)], 5),
        Curve("in-network", ns, [_bus(nbytes, m, t.total_s) for m, t in zip(ns, switched, strict=True)], 0),
    ]
    if seen:
        marks += [
            Points("", list(seen), [_bus(_AT, m, told) for m, (told, _) in seen.items()], color=5),
            Points("", list(seen), [_bus(_AT, m, chosen) for m, (_, chosen) in seen.items()], color=1),
        ]
    here = _bus(nbytes, n, switched[n - 2].total_s)
    marks.append(Points("", [n], [here], [si(here, "B/s")], 0))
    return Chart(
        Scale("GPUs", "", "linear", 1, max(ns) + 1),
        Scale("bus bandwidth", "B/s"),
        marks,
        "Bus bandwidth: theory (lines) and measured (dots)",
    )


def _bus(nbytes: float, n: int, seconds: float) -> float:
    return collectives.bus_bandwidth("all-reduce", nbytes, n, seconds)


def _beyond(chip: Chip, asked: int) -> str:
    most = chip.domain_chips or asked
    return f"A domain of the {chip.name} has only {most} GPUs, not {asked}. " if asked > most else ""


def _verdict(
    chip: Chip,
    n: int,
    nbytes: int,
    *,
    ring: collectives.Transfer,
    switch: collectives.Transfer,
    seen: dict[int, tuple[float, float]],
) -> str:
    said = f"An AllReduce of {binary(nbytes)} over {chip.counted(n)} takes {si(ring.total_s, 's')}"
    if not Cluster.of(chip, n).levels[0].reduces:
        why = "there is no switch" if chip.full_mesh else "its switches cannot add"
        return f"{said}. In-network reduction is not available, because {why}."
    gain = ring.total_s / switch.total_s
    faster = f"{count(gain)} times as fast" if gain > 1.005 else "no faster"
    if n <= 3:
        faster += ": a link would carry (n + 1)/n of the array, no less than in a ring"
    said += f" in a ring and {si(switch.total_s, 's')} with in-network reduction, which is {faster}."
    if n not in seen:
        which = chip.counted(n) if seen else f"the {chip.name}"
        return f"{said} No measurement of both was published for {which}."
    told, chosen = seen[n]
    if told / chosen < 1.005:
        return f"{said} A measurement at 8 GiB shows no gain, because NCCL uses a ring for so few GPUs."
    return f"{said} In a measurement at 8 GiB, it was {count(told / chosen)} times as fast."


SHARP = Explorer(
    key="gpus.sharp",
    title="In-network reduction (NVLink SHARP)",
    question="How much faster is an AllReduce if the switch adds, and how much of the gain is measured in "
    "practice?",
    controls={
        "chip": Chips("chip", SWITCHED, "H200"),
        "n": Slider("GPUs", 2, 72, 8),
        "nbytes": Slider("array size M", 2**12, 2**36, 2**33, "pow2", "B"),
    },
    view=_sharp,
)

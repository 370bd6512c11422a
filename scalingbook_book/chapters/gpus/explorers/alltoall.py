"""Explorer of the dispatch of tokens to k experts each: copies that leave a GPU, and their time."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    DOMAINS,
    Bars,
    Chart,
    Chips,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    bottleneck_within,
    cluster,
    domain_label,
    within,
)
from scalingbook_lib import collectives
from scalingbook_lib.steps import limits
from scalingbook_lib.units import BF16, count, percent, si

_MOST = 512
_ALL, _EACH, _ONCE, _RULE = "to every GPU", "one copy per expert", "deduplicated", "rule"


@lru_cache(maxsize=4096)
def exchanged(machine: str, Z: int, k: int, E: int, once: bool) -> limits.ExpertExchange:
    """One byte of tokens on each of Z chips, to k of E experts spread evenly over them."""
    return limits.exchange(cluster(machine, Z), Z, tokens=1, D=1 / BF16.bytes, k=k, E=E, once=once)


def ruled(machine: str, Z: int, k: int) -> float:
    """The scaling book's rule for one byte: min(k/n, 1) of n chips, or of n domains, get a copy."""
    here = cluster(machine, Z)
    targets = Z if here.nodes == 1 else here.nodes
    dense = _dense_s(machine, Z)[within(machine) if here.nodes == 1 else "leaf"]
    return dense * min(k / targets, 1) * (1 if here.nodes == 1 else targets / Z)


@lru_cache(maxsize=256)
def _dense_s(machine: str, Z: int) -> dict[str, float]:
    """Every token to every chip: an all-to-all of Z copies."""
    return limits.each_level(collectives.all_to_all, Z * Z, *cluster(machine, Z).levels)


def times(machine: str, Z: int, k: int, E: int) -> dict[str, float]:
    """Seconds for one byte of tokens per GPU, by how copies are sent."""
    return {
        _ALL: max(_dense_s(machine, Z).values()),
        _EACH: exchanged(machine, Z, k, E, False).total_s,
        _ONCE: exchanged(machine, Z, k, E, True).total_s,
        _RULE: ruled(machine, Z, k),
    }


def _alltoall(*, machine: str, Z: int, k: int, E: int, tokens: int, D: int) -> View:
    nbytes = BF16.bytes * tokens * D
    here = {name: nbytes * s for name, s in times(machine, Z, k, E).items()}
    return View(
        _verdict(machine, Z, k, E, here),
        (_chart(machine, Z, k=k, E=E, nbytes=nbytes, here=here), _copies(machine, Z, k, E)),
        (
            Readout("dispatch, deduplicated", here[_ONCE], "s"),
            Readout("one copy per expert", here[_EACH], "s"),
            Readout("by the rule", here[_RULE], "s"),
            Readout("tokens per GPU", nbytes, "B"),
            Readout("GPUs that a token reaches", Z * limits.reached(Z, k, E / Z)),
        ),
    )


def _chart(machine: str, Z: int, *, k: int, E: int, nbytes: float, here: dict[str, float]) -> Chart:
    sizes = [2**e for e in range(1, E.bit_length())]
    found = [times(machine, z, k, E) for z in sizes]
    g = DOMAINS[machine][1]

    def curve(name: str, color: int, *, dashed: bool = False) -> Curve:
        return Curve(name, sizes, [nbytes * one[name] for one in found], color, dashed)

    return Chart(
        Scale("GPUs Z that share the experts", "", "pow2", 2, _MOST),
        Scale("time of the dispatch", "s", "log"),
        (
            curve(_ALL, 1, dashed=True),
            curve(_EACH, 2),
            curve(_ONCE, 0),
            curve(_RULE, 5, dashed=True),
            Points("", [Z], [here[_ONCE]], [si(here[_ONCE], "s")], 3),
            RefLine(f"domain of {g}", g),
        ),
    )


def _copies(machine: str, Z: int, k: int, E: int) -> Bars:
    """Copies of one token that leave its GPU, over each network."""
    ways = [dict(exchanged(machine, Z, k, E, once).copies) for once in (False, True)]
    wires = within(machine)
    names = {wires: f"over {wires}", "leaf": "over the NICs"}
    levels = [level for level in names if level in ways[0]]
    return Bars(
        Scale("copies of a token that leave its GPU"),
        [names[level] for level in levels],
        (
            Series(_EACH, [ways[0][level] for level in levels], 2),
            Series(_ONCE, [ways[1][level] for level in levels], 0),
        ),
        title=f"On Z = {count(Z)} GPUs, k = {k}",
    )


def _verdict(machine: str, Z: int, k: int, E: int, here: dict[str, float]) -> str:
    found = exchanged(machine, Z, k, E, True)
    bottleneck = bottleneck_within(machine) if found.bound == within(machine) else "the NIC"
    saved = 1 - here[_ONCE] / here[_EACH]
    off = here[_RULE] / here[_ONCE] - 1
    rule = (
        "The rule of thumb agrees"
        if abs(off) < 0.005
        else f"The rule of thumb is {percent(abs(off))} too {'high' if off > 0 else 'low'}"
    )
    return (
        f"On {count(Z)} GPUs in {domain_label(machine)}, with {k} of {E} experts per token, the dispatch "
        f"takes {si(here[_ONCE], 's')}, and the bottleneck is {bottleneck}. {rule}. "
        f"Deduplicating copies saves {percent(saved)}."
    )


ALLTOALL = Explorer(
    key="gpus.alltoall",
    title="Dispatching tokens to their experts",
    question="What does an AllToAll cost if every token goes to only k experts?",
    controls={
        "machine": Chips("machine", tuple(DOMAINS)),
        "Z": Slider("GPUs Z", 2, _MOST, 8, "pow2"),
        "k": Slider("experts per token k", 1, 16, 8),
        "E": Slider("experts E", 16, _MOST, 256, "pow2"),
        "tokens": Slider("tokens per GPU", 128, 65536, 4096, "pow2", "tokens"),
        "D": Slider("D", 1024, 16384, 8192, "pow2"),
    },
    view=_alltoall,
)

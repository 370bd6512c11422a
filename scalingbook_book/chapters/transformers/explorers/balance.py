"""Explorer of expert balance: the loads of GPUs before and after EPLB, for Zipf or for a pasted histogram."""

from functools import lru_cache
from random import Random

from scalingbook_book.reader.explorers.parts import (
    Chart,
    Curve,
    Explorer,
    Notation,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib.steps import expert_load
from scalingbook_lib.steps.expert_load import Balance
from scalingbook_lib.units import percent

NODE, EXTRA, SEED = 8, 4, 1  # GPUs of a node, the most replicas per GPU, and the order of the experts
TORI = {8: (2, 2, 2), 16: (2, 2, 4), 32: (2, 4, 4), 64: (4, 4, 4)}
LONGEST = 20_000  # characters of a pasted histogram

type Loads = tuple[float, ...]


@lru_cache(maxsize=64)
def zipf(E: int, skew: float) -> Loads:
    """Return the loads of E experts by Zipf's law, in an arbitrary but fixed order."""
    loads = expert_load.zipf_loads(E, skew)
    Random(SEED).shuffle(loads)
    return tuple(loads)


@lru_cache(maxsize=256)
def balanced(loads: Loads, Z: int, k: int, extra: int | None) -> Balance:
    """Return the balance on Z GPUs: with `extra` replicas on each, or, for None, in the model's order."""
    return expert_load.balance(
        loads,
        Z,
        redundant=Z * (extra or 0),
        rebalanced=extra is not None,
        k=k,
        chips_per_node=NODE,
    )


def _balance(*, pasted: str, E: int, skew: float, k: int, Z: int, extra: int, tokens: int) -> View:
    loads = tuple(expert_load.histogram(pasted)) if pasted else zipf(E, skew)
    k = min(k, len(loads))
    before, after = balanced(loads, Z, k, None), balanced(loads, Z, k, extra)
    chance = expert_load.variation(Z, tokens * k)
    links = expert_load.busiest_torus_link(before.chips, TORI[Z])
    return View(
        _verdict(before, after, chance, extra),
        (_loads(before, after), _replicas(loads, Z, k, extra, chance)),
        (
            Readout("hottest expert / mean", before.hottest_expert, "", f"{before.hottest_expert:.3g}"),
            Readout("busiest GPU / mean, as numbered", before.busiest_chip, "", f"{before.busiest_chip:.3g}"),
            Readout("busiest GPU / mean, with EPLB", after.busiest_chip, "", f"{after.busiest_chip:.3g}"),
            Readout("by random variation alone", chance, "", f"{chance:.3g}"),
            Readout(
                "busiest node's NICs / mean, as numbered",
                before.busiest_node_tokens,
                "",
                f"{before.busiest_node_tokens:.3g}",
            ),
            Readout(
                f"busiest link of a {' × '.join(map(str, TORI[Z]))} torus / even load, as numbered",
                links,
                "",
                f"{links:.3g}",
            ),
            Readout.percent("additional expert memory", Z * extra / len(loads)),
        ),
        columns=2,
    )


def _loads(before: Balance, after: Balance) -> Chart:
    ranks = list(range(1, len(before.chips) + 1))
    return Chart(
        Scale("GPUs, busiest first", "", "linear", 1, len(ranks)),
        Scale("load / mean", "", "linear", 0),
        (
            Curve("as numbered", ranks, sorted(before.chips, reverse=True), 5),
            Curve("with EPLB", ranks, sorted(after.chips, reverse=True), 0),
            RefLine("mean", 1, "y"),
        ),
        title="Load of each GPU",
    )


def _replicas(loads: Loads, Z: int, k: int, extra: int, chance: float) -> Chart:
    numbers = list(range(EXTRA + 1))
    found = [balanced(loads, Z, k, number).busiest_chip for number in numbers]
    return Chart(
        Scale("redundant experts per GPU", "", "linear", 0, EXTRA),
        Scale("busiest GPU / mean", "", "linear", 0),
        (
            Curve("with EPLB", numbers, found, 0),
            Points("", [extra], [found[extra]], [f"{found[extra]:.3g}"], 0),
            RefLine("random variation", chance, "y"),
        ),
        title="What replicas buy",
    )


def _verdict(before: Balance, after: Balance, chance: float, extra: int) -> str:
    if before.busiest_chip < 1.02:
        said = "The load is even, so there is nothing to rebalance. "
    else:
        said = (
            f"With the experts in the order of the model, the busiest GPU has {before.busiest_chip:.3g} "
            f"times the mean load, so the GPUs compute {percent(before.balancedness)} of the time. "
        )
        how = f"{pluralize(extra, 'redundant expert')} per GPU" if extra else "no redundant experts"
        said += f"For the recorded loads, EPLB with {how} reduces this to {after.busiest_chip:.3g}. "
    more = "Only more tokens per GPU reduce it." if chance > 1.02 else "That is negligible."
    return f"{said}In any single step, random variation alone makes it about {chance:.3g}. {more}"


BALANCE = Explorer(
    key="transformers.balance",
    title="Expert load balance: what EPLB and redundant experts remove",
    question="How much longer does the busiest GPU take, and how many redundant experts repair it?",
    controls={
        "extra": Slider("redundant experts per GPU", 0, EXTRA, 1),
        "Z": Slider("GPUs in the expert-parallel group, Z", 8, 64, 32, "pow2"),
        "skew": Slider("skew of the router (Zipf exponent)", 0.0, 1.5, 0.6, step=0.05),
        "E": Slider("experts E", 64, 512, 256, "pow2"),
        "k": Slider("experts per token, k", 1, 16, 8),
        "tokens": Slider("tokens per GPU", 8, 2**14, 128, "pow2", "tokens"),
        "pasted": Notation(
            "tokens of each expert, pasted (replaces E and the skew)", "", "812, 640, 97, …", LONGEST
        ),
    },
    view=_balance,
)

"""Explorers of how the limits move when matmuls and transfers have different data types."""

from functools import cache

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    SWITCHED,
    Bars,
    Chips,
    Choice,
    Explorer,
    Readout,
    Scale,
    Series,
    View,
    join_and,
    sig3,
)
from scalingbook_lib.machines import Cluster, Machine, chips
from scalingbook_lib.machines.formats import NVFP4, compute_dtype
from scalingbook_lib.steps.limits.recipe import Recipe
from scalingbook_lib.units import BF16, DTYPES, FP4, FP8, count

_STORED = {"bf16": BF16, "fp8": FP8, "NVFP4": NVFP4.dtype}
_PRODUCTS = {"bf16": BF16, "fp8": FP8, "fp4": FP4}


def _ladder(*, chip: str, weights: str, product: str) -> View:
    on, asked = chips.find(chip), _PRODUCTS[product]
    done = compute_dtype(on, asked)
    rows = {
        f"{w} weights, {p} matmuls": Recipe(weights=_STORED[w], product=_PRODUCTS[p]).batch(on)
        for w in _STORED
        for p in _PRODUCTS
        if compute_dtype(on, _PRODUCTS[p]) == _PRODUCTS[p]
    }
    now = Recipe(weights=_STORED[weights], product=done).batch(on)
    plain = Recipe().batch(on)
    only = (
        "" if done == asked else f" {chip} does not compute faster in {product}, so the matmuls are in bf16."
    )
    bars = Bars(
        Scale("critical batch [tokens]", "", "linear"), list(rows), [Series("", list(rows.values()), 0)]
    )
    return View(
        f"On {chip}, {weights} weights with {done} matmuls are compute-bound above {count(now)} tokens, "
        f"{sig3(now / plain, 2)} times the critical batch size in bf16.{only}",
        (bars,),
        (
            Readout("critical batch", now, "", count(now)),
            Readout("with bf16 everywhere", plain, "", count(plain)),
            Readout(
                "compute rate / bf16 rate",
                on.flops_per_s(done) / on.flops_per_s(),
                "",
                sig3(on.flops_per_s(done) / on.flops_per_s(), 2),
            ),
        ),
    )


LADDER = Explorer(
    key="lowprecision.ladder",
    title="Critical batch size by data type",
    question="Above what batch size is a layer compute-bound, given the data types of its weights and "
    "matmuls?",
    controls={
        "chip": Chips("chip", CHIPS, "GB300"),
        "weights": Choice("weights in HBM", tuple(_STORED), "NVFP4"),
        "product": Choice("matmuls in", tuple(_PRODUCTS), "fp4"),
    },
    view=_ladder,
)


@cache
def machine(chip: str) -> Machine:
    """A cluster of about four thousand of these chips."""
    on = chips.find(chip)
    return Cluster.of(on, 4608 if on.domain_chips == 72 else 4096)


def limits(recipe: Recipe, on: Machine) -> dict[str, float]:
    """Smallest compute-bound tokens per chip for FSDP, and widths for TP=8 and EP=64."""
    return {
        "FSDP: tokens per chip": recipe.data_parallel(on).least,
        "TP=8: width": recipe.tensor_parallel(on, 8).least,
        "EP=64: expert width": recipe.expert_parallel(on, 64, 8, gated=True).least,
    }


_WIDE = {"bf16": BF16, "fp8": FP8}
SAME = 0.05  # limits that differ by less are called equal


def _compared(ratios: dict[str, float]) -> str:
    """Say which limits change most, relative to bf16."""
    by_name = {name.partition(":")[0]: ratio for name, ratio in ratios.items()}
    change = max if max(by_name.values()) > 1 + SAME else min
    most = change(by_name.values())
    names = [name for name, ratio in by_name.items() if abs(ratio / most - 1) < SAME]
    if abs(most - 1) < SAME:
        return "every limit stays within 5% of its value in bf16"
    verb, times = "rise" if most > 1 else "fall", sig3(most, 2)
    if len(names) == len(by_name):
        return f"all limits {verb} to {times} times their values in bf16"
    if len(names) == 1:
        return f"the limit of {names[0]} {verb}s most, to {times} times its value in bf16"
    return f"the limits of {join_and(names)} {verb} most, to {times} times their values in bf16"


def _mixer(*, chip: str, product: str, gather: str, sums: str, dispatch: str, combine: str) -> View:
    on = machine(chip)
    recipe = Recipe(
        product=DTYPES[product],
        gather=_WIDE[gather],
        sums=DTYPES[sums],
        dispatch=_WIDE[dispatch],
        combine=_WIDE[combine],
    )
    plain, now = limits(Recipe(), on), limits(recipe, on)
    ratios = {name: now[name] / plain[name] for name in now}
    bars = Bars(
        Scale("limit relative to bf16", "", "linear"), list(ratios), [Series("", list(ratios.values()), 0)]
    )
    return View(
        f"On {on.name}s, {_compared(ratios)}. "
        f"FSDP needs {count(now['FSDP: tokens per chip'])} tokens per chip to be compute-bound.",
        (bars,),
        tuple(Readout(name, value, "", count(value)) for name, value in now.items()),
    )


MIXER = Explorer(
    key="lowprecision.mixer",
    title="Data types of matmuls and transfers",
    question="Which network limits rise with faster matmuls, and which smaller transfers lower them again?",
    controls={
        "chip": Chips("chip", tuple(n for n in SWITCHED if "fp8" in chips.KNOWN[n].rates()), "H100"),
        "product": Choice("matmuls in", ("bf16", "fp8"), "fp8"),
        "gather": Choice("AllGathers in", tuple(_WIDE), "bf16"),
        "sums": Choice("reductions in", ("fp32", "bf16", "fp8"), "bf16"),
        "dispatch": Choice("dispatch to experts in", tuple(_WIDE), "bf16"),
        "combine": Choice("combine in", tuple(_WIDE), "bf16"),
    },
    view=_mixer,
)

"""Where do the boundaries go when products and transfers have types of their own?"""

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
        f"{w} weights, {p} products": Recipe(weights=_STORED[w], product=_PRODUCTS[p]).batch(on)
        for w in _STORED
        for p in _PRODUCTS
        if compute_dtype(on, _PRODUCTS[p]) == _PRODUCTS[p]
    }
    now = Recipe(weights=_STORED[weights], product=done).batch(on)
    plain = Recipe().batch(on)
    only = "" if done == asked else f" {chip} multiplies no faster in {product}, so products are bf16."
    bars = Bars(Scale("tokens", "", "linear"), list(rows), [Series("", list(rows.values()), 0)])
    return View(
        f"{chip}, {weights} weights and {done} products: compute-bound from {count(now)} tokens, "
        f"{sig3(now / plain, 2)} times bf16's batch.{only}",
        (bars,),
        (
            Readout("tokens", now, "", count(now)),
            Readout("in bf16", plain, "", count(plain)),
            Readout(
                "rate over bf16's",
                on.flops_per_s(done) / on.flops_per_s(),
                "",
                sig3(on.flops_per_s(done) / on.flops_per_s(), 2),
            ),
        ),
    )


LADDER = Explorer(
    key="lowprecision.ladder",
    title="Two types, one batch",
    question="From which batch is a layer compute-bound, by the types that are read and multiplied?",
    controls={
        "chip": Chips("chip", CHIPS, "GB300"),
        "weights": Choice("weights in HBM", tuple(_STORED), "NVFP4"),
        "product": Choice("products", tuple(_PRODUCTS), "fp4"),
    },
    view=_ladder,
)


@cache
def machine(chip: str) -> Machine:
    """About a thousand of them."""
    on = chips.find(chip)
    return Cluster.of(on, 1152 if on.domain_chips == 72 else 1024)


def limits(recipe: Recipe, on: Machine) -> dict[str, float]:
    """Tokens a chip for FSDP, the widths for eight tensor ways and for experts on 64 chips."""
    return {
        "FSDP: tokens a chip": recipe.data_parallel(on).least,
        "TP over 8: width": recipe.tensor_parallel(on, 8).least,
        "EP over 64: width": recipe.expert_parallel(on, 64, 8, gated=True).least,
    }


_WIDE = {"bf16": BF16, "fp8": FP8}


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
        Scale("limit, over bf16's", "", "linear"), list(ratios), [Series("", list(ratios.values()), 0)]
    )
    worst = max(ratios, key=lambda name: ratios[name])
    said = {name: sig3(ratio, 2) for name, ratio in ratios.items()}
    verdict = (
        f"Every limit stays within 5% of bf16's on {on.name}"
        if max(abs(r - 1) for r in ratios.values()) < 0.05
        else f"{on.name}: {worst.partition(':')[0]} moves most, to {said[worst]} times its limit in bf16"
    )
    return View(
        f"{verdict}; FSDP needs {count(now['FSDP: tokens a chip'])} tokens a chip.",
        (bars,),
        tuple(Readout(name, value, "", count(value)) for name, value in now.items()),
    )


MIXER = Explorer(
    key="lowprecision.mixer",
    title="A dial for each type",
    question="Which limits of the network rise with a faster product, and which dials bring them back?",
    controls={
        "chip": Chips("chip", tuple(n for n in SWITCHED if "fp8" in chips.KNOWN[n].rates()), "H100"),
        "product": Choice("products", ("bf16", "fp8"), "fp8"),
        "gather": Choice("gathers", tuple(_WIDE), "bf16"),
        "sums": Choice("sums", ("fp32", "bf16", "fp8"), "bf16"),
        "dispatch": Choice("tokens to experts", tuple(_WIDE), "bf16"),
        "combine": Choice("and back", tuple(_WIDE), "bf16"),
    },
    view=_mixer,
)

"""Explorer of scaling laws: the size of a model for a training budget, and for the tokens that it serves."""

from scalingbook_book.reader.explorers.parts import (
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    sig3,
)
from scalingbook_lib.rules.scaling_laws import CHINCHILLA, CHINCHILLA_REFIT, Allocation, LossLaw
from scalingbook_lib.units import count_in_words, percent

LAWS = {law.name: law for law in (CHINCHILLA_REFIT, CHINCHILLA)}
_SIZES = [2 ** (e / 8) for e in range(-18, 17)]  # relative to the optimum, from 0.21 to 4


def _scaling(*, law: str, budget: float, size: float, served: float) -> View:
    fit, flops, tokens = LAWS[law], budget * 1e21, served * 1e12
    best, own = fit.optimum(flops), fit.same_loss(flops, size)
    life = fit.lifetime_optimum(flops, tokens)
    return View(
        _verdict(best, own, life, tokens),
        (_loss(fit, flops, size), _lifetime(fit, flops, size, tokens)),
        (
            Readout("compute-optimal size", best.params, "", count_in_words(best.params)),
            Readout("compute-optimal tokens", best.tokens, "", count_in_words(best.tokens)),
            Readout("tokens per parameter, optimum", best.tokens_per_param, "", sig3(best.tokens_per_param)),
            Readout("your model", own.params, "", count_in_words(own.params)),
            Readout("its tokens for the same loss", own.tokens, "", count_in_words(own.tokens)),
            Readout("its training FLOPs over the budget", own.flops / flops, "×"),
            Readout("lifetime optimum", life.params, "", count_in_words(life.params)),
        ),
        columns=2,
    )


def _loss(fit: LossLaw, flops: float, size: float) -> Chart:
    """The loss of all sizes that are trained with exactly the budget, above that of the optimum."""
    best = fit.optimum(flops)
    least = fit.loss(best.params, best.tokens)

    def loss(relative: float) -> float:
        return fit.loss(relative * best.params, best.tokens / relative) - least

    return Chart(
        Scale("parameters, in billions", "", "log"),
        Scale("loss above the lowest, nats per token", "", "linear"),
        (
            Curve("same FLOPs", [s * best.params / 1e9 for s in _SIZES], [loss(s) for s in _SIZES], 0),
            Points("", [size * best.params / 1e9], [loss(size)], ["yours"], 1),
        ),
        title="Loss at the training budget",
    )


def _lifetime(fit: LossLaw, flops: float, size: float, served: float) -> Chart:
    """The FLOPs of all sizes that are trained until they are as good as the optimum."""
    best = fit.optimum(flops)
    runs = [fit.same_loss(flops, s) for s in _SIZES]
    sizes = [run.params / 1e9 for run in runs]
    own, life = fit.same_loss(flops, size), fit.lifetime_optimum(flops, served)
    return Chart(
        Scale("parameters, in billions", "", "log"),
        Scale("FLOPs over the budget", "", "log"),
        (
            Curve("training", sizes, [run.flops / flops for run in runs], 0),
            Curve("training and serving", sizes, [run.lifetime_flops(served) / flops for run in runs], 2),
            RefLine("compute-optimal", best.params / 1e9, axis="x"),
            Points("", [own.params / 1e9], [own.lifetime_flops(served) / flops], ["yours"], 1),
            Points("", [life.params / 1e9], [life.lifetime_flops(served) / flops], ["best"], 2),
        ),
        title="FLOPs to the same loss",
    )


def _verdict(best: Allocation, own: Allocation, life: Allocation, served: float) -> str:
    saved = 1 - life.lifetime_flops(served) / best.lifetime_flops(served)
    more = own.flops / best.flops - 1
    here = 1 - own.lifetime_flops(served) / best.lifetime_flops(served)
    yours = (
        "Yours is the compute-optimal size."
        if abs(own.params / best.params - 1) < 0.01
        else f"Yours needs {percent(more)} more training FLOPs and "
        + (f"saves {percent(here)} of the total." if here > 0 else f"{percent(-here)} more in total.")
    )
    fewer = f", {percent(saved)} fewer" if saved > 0.001 else ""
    return (
        f"Training alone would choose {count_in_words(best.params)} parameters. With "
        f"{count_in_words(served)} tokens served, {count_in_words(life.params)} parameters need the fewest "
        f"FLOPs over the lifetime{fewer}. {yours}"
    )


SCALING = Explorer(
    key="training.scaling",
    title="Compute-optimal and lifetime-optimal model size",
    question="How large should a model be, for a training budget and for the tokens that it will serve?",
    controls={
        "law": Choice("fit", tuple(LAWS), CHINCHILLA_REFIT.name),
        "budget": Slider("training budget, in 10²¹ FLOPs", 1.0, 1e6, 4900.0, "log"),
        "size": Slider("size relative to the optimum", 0.22, 4.0, 0.5, "log"),
        "served": Slider("tokens served, in trillions", 0.01, 1000.0, 10.0, "log"),
    },
    view=_scaling,
)

"""Figure of the compute-optimal size: the loss by number of parameters at three budgets of FLOPs."""

from collections.abc import Mapping

from scalingbook_book.reader.explorers.view import Chart, Curve, Points, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK
from scalingbook_lib.machines import chips
from scalingbook_lib.rules.scaling_laws import CHINCHILLA_REFIT as LAW
from scalingbook_lib.units import count_in_words

PUBLISHED: Mapping[str, tuple[float, float]] = {  # parameters, training tokens
    "Gopher": (280e9, 300e9),
    "Chinchilla": (70e9, 1.4e12),
    "Llama 3 8B": (8.03e9, 15e12),
    "Llama 3 70B": (70.6e9, 15e12),
    "Llama 3.1 405B": (405e9, 15.6e12),
}
CHINCHILLA_FLOPS = 5.76e23  # as published
OWN_FLOPS = 1024 * chips.TPU7X.bf16_flops_per_s * 0.4 * 60 * 86_400  # 1,024 chips for sixty days at 40%
_STEPS = [2 ** (e / 8) for e in range(-28, 29)]  # size relative to the optimum, from 0.09 to 11
_LOW, _HIGH = 1.85, 2.05  # of the loss axis, in nats per token


def budgets() -> tuple[float, ...]:
    """Return the budgets of the figure in FLOPs: of Chinchilla, of our own run, and of Llama 3.1 405B."""
    params, tokens = PUBLISHED["Llama 3.1 405B"]
    return CHINCHILLA_FLOPS, OWN_FLOPS, 6 * params * tokens


def flat_optimum() -> Figure:
    """How much does the loss rise if a model of the same budget is too small or too large?"""
    sizes = [count_in_words(LAW.optimum(flops).params) for flops in budgets()]
    rise = max(_rise(flops, share) for flops in budgets() for share in (0.5, 2.0))
    return Figure(
        key="training.flat_optimum",
        alt="Three U-shaped curves of the loss against the number of parameters on a log axis, one for each "
        f"budget of FLOPs. Their lowest points are at {sizes[0]}, {sizes[1]} and {sizes[2]} parameters, and the "
        "curves are flat around them. Chinchilla and Llama 3.1 405B are near the lowest point of their budget. "
        "Gopher is far to the right of it, and Llama 3 8B is far to the left.",
        caption="Loss against model size at three budgets of training FLOPs, by the corrected fit: those of Chinchilla, "
        "of 1,024 TPU7x in sixty days, and of Llama 3.1 405B. The optima "
        f"(the dots without a name) are at {sizes[0]}, {sizes[1]} and {sizes[2]} parameters, and the curves are flat "
        "around them: a model of half or twice the optimal size loses at most "
        f"{rise:.3f} nats. Gopher is far too large for its budget, and Llama 3 8B was made too small on purpose. "
        "(Published models are drawn at the loss that the fit gives for their parameters and tokens, and not all "
        "of them used one of these three budgets.)",
        parts=lambda wide: [_chart()],
    )


def _chart() -> Chart:
    curves, dots = [], []
    for flops, color in zip(budgets(), (NETWORK, MATH, MEMORY), strict=True):
        best = LAW.optimum(flops)
        points = [(best.params * step, _loss(flops, best.params * step)) for step in _STEPS]
        shown = [(params / 1e9, loss) for params, loss in points if loss <= _HIGH]
        curves.append(Curve(_power(flops), [x for x, _ in shown], [y for _, y in shown], color))
        dots.append(Points("", [best.params / 1e9], [LAW.loss(best.params, best.tokens)], [""], color))
    models = [(params / 1e9, LAW.loss(params, tokens)) for params, tokens in PUBLISHED.values()]
    named = Points("", [x for x, _ in models], [y for _, y in models], list(PUBLISHED), IDLE)
    return Chart(
        Scale("parameters, in billions", "", "log"),
        Scale("loss, nats per token", "", "linear", _LOW, _HIGH),
        (*curves, *dots, named),
    )


def _power(flops: float) -> str:
    """Return a count of FLOPs as a label, such as 5.8·10²³ FLOPs."""
    digits, exponent = f"{flops:.1e}".split("e+")
    return f"{digits}·10{exponent.translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))} FLOPs"


def _loss(flops: float, params: float) -> float:
    return LAW.loss(params, flops / (6 * params))


def _rise(flops: float, share: float) -> float:
    best = LAW.optimum(flops)
    return _loss(flops, share * best.params) - _loss(flops, best.params)

"""Explorer of data parallelism between pods: tokens per pod needed to hide the AllReduce."""

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Chart,
    Chips,
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
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP32, count, count_in_words, dtype

_MOST = 64


def _dcn(*, chip: str, pods: int, batch: int, gradients: str) -> View:
    on = chips.find(chip)
    each = batch / pods
    least = rules.cross_pod_tokens(on, pods, gradients=dtype(gradients))
    pod = on.torus.pod_chips if on.torus else 1
    return View(
        _verdict(pods, each, least, chip),
        (_tokens(chip, pods, batch, gradients), _ratios(chip, pods, batch, gradients)),
        (
            Readout("tokens per pod", each, "", count_in_words(round(each))),
            Readout("needed per pod", least, "", f"{count_in_words(round(least))} tokens"),
            Readout("AllReduce over backward pass", least / each, "×"),
            Readout("tokens per chip in the largest pods", each / pod, "", sig3(each / pod)),
        ),
        columns=2,
    )


def _tokens(chip: str, pods: int, batch: int, gradients: str) -> Chart:
    sizes = list(range(2, _MOST + 1))
    on = chips.find(chip)
    needed = [
        Curve(
            f"needed, {g.name} gradients",
            sizes,
            [rules.cross_pod_tokens(on, n, gradients=g) for n in sizes],
            color,
            dashed=g.name != gradients,
        )
        for color, g in enumerate((BF16, FP32))
    ]
    return Chart(
        Scale("pods", "", "log", 2, _MOST),
        Scale("tokens per pod and step", "", "log"),
        (
            Curve("batch divided by pods", sizes, [batch / n for n in sizes], 2),
            *needed,
            Points("", [pods], [batch / pods], [f"{count(round(batch / pods))}"], 2),
        ),
        title="Tokens that each pod has and needs",
    )


def _ratios(chip: str, pods: int, batch: int, gradients: str) -> Chart:
    on, kind = chips.find(chip), dtype(gradients)
    sizes = list(range(2, _MOST + 1))
    over = [rules.cross_pod_tokens(on, n, gradients=kind) * n / batch for n in sizes]
    here = rules.cross_pod_tokens(on, pods, gradients=kind) * pods / batch
    return Chart(
        Scale("pods", "", "log", 2, _MOST),
        Scale("AllReduce over backward pass", "×", "log"),
        (
            Curve("between pods", sizes, over, 0),
            RefLine("hidden below", 1, axis="y"),
            Points("", [pods], [here], [f"{here:.3g}"], 0),
        ),
        title="AllReduce of the gradients, relative to the backward pass",
    )


def _verdict(pods: int, each: float, least: float, chip: str) -> str:
    said = f"{count_in_words(round(each))} tokens for each of {pods} {chip} pods"
    if each >= least:
        longer = f"{each / least:.3g} times as long as the AllReduce of the gradients"
        return f"{said}: the backward pass takes {longer}, so the AllReduce can be hidden."
    return (
        f"{said} are too few: the AllReduce takes {least / each:.3g} times as long as the backward pass. "
        f"At least {count_in_words(round(least))} tokens per pod are needed, or "
        f"{count_in_words(round(least * pods))} in total."
    )


DCN = Explorer(
    key="training.dcn",
    title="Data parallelism between pods",
    question="How many tokens must a pod have so that its backward pass hides the AllReduce of gradients?",
    controls={
        "chip": Chips("chip", TORI, "TPU v5p"),
        "pods": Slider("pods", 2, _MOST, 4),
        "batch": Slider("global batch, tokens", 2**16, 2**27, 2**22, "pow2"),
        "gradients": Choice("gradient dtype", (BF16.name, FP32.name), BF16.name),
    },
    view=_dcn,
)

"""Explorer of the time per token with weights in SRAM, and with weights that are read from HBM."""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib.machines import chips, datasheet
from scalingbook_lib.units import count_in_words, si

MACHINES = ("Groq 3 LPU", "WSE-3", "GB300", "Rubin", "M5 Ultra", "DGX Spark")


def _pinned(*, params: float, bits: str, layers: int, hop: float) -> View:
    nbytes = params * 1e9 * int(bits) / 8
    found = {
        name: datasheet.weights_resident(
            nbytes, chips.find(name), steps=layers if many(name, nbytes) else 0, hop_s=hop * 1e-6
        )
        for name in MACHINES
    }
    series = [
        Series("reading weights", [1e6 * one.read_s for one in found.values()], 0),
        Series("latency", [1e6 * one.hops_s for one in found.values()], 2),
    ]
    fastest = min(found, key=lambda name: found[name].token_s)
    share = found[fastest].hops_s / found[fastest].token_s
    return View(
        f"{fastest} is the fastest, with {pluralize(found[fastest].chips, 'chip')}: "
        f"{count_in_words(1 / found[fastest].token_s)} tokens/s for one user, and latency takes "
        f"{100 * share:.0f}% of the time.",
        (
            Bars(
                Scale("µs per token", "", "linear"),
                [f"{name}: {one.chips:,}" for name, one in found.items()],
                series,
                stacked=True,
            ),
        ),
        tuple(Readout(name, one.token_s, "s", si(one.token_s, "s")) for name, one in found.items()),
    )


def many(name: str, nbytes: float) -> bool:
    """Whether the weights need more than one chip."""
    return nbytes > chips.find(name).hbm_bytes


PINNED = Explorer(
    key="machines.pinned",
    title="SRAM, HBM or desktop: time per token",
    question="How many chips hold the model, and is the time per token mostly reading weights or latency?",
    controls={
        "params": Slider("billion active parameters", 1.0, 400.0, 70.0, "log"),
        "bits": Choice("bits per parameter", ("4", "8", "16"), "8"),
        "layers": Slider("layers", 16, 128, 80, step=4),
        "hop": Slider("latency per layer, µs", 0.1, 10.0, 2.0, "log"),
    },
    view=_pinned,
)

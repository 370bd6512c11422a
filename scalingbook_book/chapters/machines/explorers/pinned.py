"""What does a token take where weights stay in SRAM, and where they are read from HBM?"""

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
from scalingbook_lib.units import count, si

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
        Series("hops", [1e6 * one.hops_s for one in found.values()], 2),
    ]
    fastest = min(found, key=lambda name: found[name].token_s)
    share = found[fastest].hops_s / found[fastest].token_s
    return View(
        f"{fastest} is the fastest: {pluralize(found[fastest].chips, 'chip')}, "
        f"{count(1 / found[fastest].token_s)} tokens/s for one user; hops are {100 * share:.0f}% of it.",
        (
            Bars(
                Scale("µs a token", "", "linear"),
                [f"{name}: {one.chips:,}" for name, one in found.items()],
                series,
                stacked=True,
            ),
        ),
        tuple(Readout(name, one.token_s, "s", si(one.token_s, "s")) for name, one in found.items()),
    )


def many(name: str, nbytes: float) -> bool:
    """Whether more than one of them holds it."""
    return nbytes > chips.find(name).hbm_bytes


PINNED = Explorer(
    key="machines.pinned",
    title="SRAM, HBM or a desk",
    question="How many chips hold the model, and is a token made of reading or of hops?",
    controls={
        "params": Slider("billion parameters that a token meets", 1.0, 400.0, 70.0, "log"),
        "bits": Choice("bits each", ("4", "8", "16"), "8"),
        "layers": Slider("layers", 16, 128, 80, step=4),
        "hop": Slider("µs a layer of hops", 0.1, 10.0, 2.0, "log"),
    },
    view=_pinned,
)

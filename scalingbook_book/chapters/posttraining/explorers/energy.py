"""Explorer of the energy of a training run, by what is counted."""

from scalingbook_book.reader.explorers.parts import (
    POWERED,
    Bars,
    Chips,
    Choice,
    Explorer,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    sig3,
)
from scalingbook_lib import models, training
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.machines.energy import BOUNDARIES, energy
from scalingbook_lib.units import count_in_words, si

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "DeepSeek-V3")


def _energy(*, model: str, trillions: float, chip: str, mfu: float, cents: float, grams: float) -> View:
    m, on = models.find(model), chips.find(chip)
    run = training.run_at(m, Cluster.of(on, 8), trillions * 1e12, mfu=mfu / 100)
    counted = [energy(on, 3600 * run.chip_hours, boundary) for boundary in BOUNDARIES]
    site = counted[-1]
    flops = 6 * m.active_params * run.tokens
    usd, tonnes = site.usd(cents / 100), site.mwh * grams / 1e3
    bars = Bars(
        Scale("MWh", "", "linear"), [b.name for b in BOUNDARIES], [Series("", [e.mwh for e in counted], 0)]
    )
    return View(
        f"Training {model} on {sig3(trillions)} trillion tokens uses {si(site.mwh * 1e6, 'Wh')} at the site, "
        f"{sig3(site.mwh / counted[0].mwh, 2)} times the energy of the chips. At {sig3(grams)} g of CO₂ per "
        f"kilowatt-hour, it emits {sig3(tonnes)} tonnes.",
        (bars,),
        (
            Readout("chip-hours", run.chip_hours, "", count_in_words(run.chip_hours)),
            Readout(
                "pJ per FLOP, whole site", 1e12 * site.joules / flops, "", sig3(1e12 * site.joules / flops)
            ),
            Readout("J per token, whole site", site.joules / run.tokens, "", sig3(site.joules / run.tokens)),
            Readout("cost of electricity", usd, "", f"${count_in_words(usd)}"),
            Readout("tonnes of CO₂", tonnes, "", sig3(tonnes)),
        ),
    )


ENERGY = Explorer(
    key="posttraining.energy",
    title="Energy, cost and emissions of a training run",
    question="How much energy does a training run use in the chips, in the nodes and at the whole site?",
    controls={
        "model": Choice("model", MODELS, "Llama 3.1 405B"),
        "trillions": Slider("training tokens in trillions", 0.1, 30.0, 15.0, "log"),
        "chip": Chips("chip", POWERED, "H100"),
        "mfu": Slider("MFU, including interruptions", 10.0, 60.0, 35.0, unit="%", step=1.0),
        "cents": Slider("US cents per kilowatt-hour", 2.0, 30.0, 8.0, "log"),
        "grams": Slider("grams of CO₂ per kilowatt-hour", 10.0, 800.0, 400.0, "log"),
    },
    view=_energy,
)

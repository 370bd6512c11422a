"""Figure of the time per token on SRAM-based machines and on machines with HBM."""

from scalingbook_book.reader.explorers.view import Bars, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_lib.machines import chips, datasheet
from scalingbook_lib.units import count, si

BYTES, LAYERS, HOP_S = 70e9, 80, 6e-6  # 70B in fp8; published speeds leave about 6 µs a layer on a wafer
ON = {"Groq 3 LPU": 0, "Groq 3 LPU, a rack": 256, "WSE-3": 0, "GB300, 8": 8, "Rubin, 8": 8}


def token() -> Figure:
    """How much of a token's time is reading weights, and how much is latency?"""
    found = {
        name: datasheet.weights_resident(
            BYTES, chips.find(name.partition(",")[0]), steps=LAYERS, hop_s=HOP_S, chips=many
        )
        for name, many in ON.items()
    }
    labels = [f"{name.partition(',')[0]}, {one.chips} chips" for name, one in found.items()]
    said = "; ".join(
        f"{label}: {si(one.read_s, 's')} to read weights, {si(one.hops_s, 's')} of latency"
        for label, one in zip(labels, found.values(), strict=True)
    )
    return Figure(
        key="machines.token",
        alt=f"Stacked bars of the time per token, split into reading weights and latency: {said}.",
        caption=f"Time per token of a model with 70 billion parameters in 8 bits and {LAYERS} layers, on "
        f"different machines, with {1e6 * HOP_S:g} µs of latency per layer. On SRAM-based chips, "
        "nearly all of it is latency, and bandwidth hardly matters. The fastest generates "
        f"{count(max(1 / one.token_s for one in found.values()))} tokens/s.",
        parts=lambda wide: [
            Bars(
                Scale("time per token (µs)"),
                labels,
                [
                    Series("reading weights", [1e6 * one.read_s for one in found.values()], 0),
                    Series("latency", [1e6 * one.hops_s for one in found.values()], 2),
                ],
                stacked=True,
            )
        ],
    )

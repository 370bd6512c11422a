"""What one token is made of, on machines of SRAM and of HBM."""

from scalingbook_book.reader.explorers.view import Bars, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_lib.machines import chips, datasheet
from scalingbook_lib.units import count, si

BYTES, LAYERS, HOP_S = 70e9, 80, 6e-6  # 70B in fp8; published speeds leave about 6 µs a layer on a wafer
ON = {"Groq 3 LPU": 0, "Groq 3 LPU, a rack": 256, "WSE-3": 0, "GB300, 8": 8, "Rubin, 8": 8}


def token() -> Figure:
    """What is a token made of?"""
    found = {
        name: datasheet.weights_resident(
            BYTES, chips.find(name.partition(",")[0]), steps=LAYERS, hop_s=HOP_S, chips=many
        )
        for name, many in ON.items()
    }
    labels = [f"{name.partition(',')[0]}: {one.chips}" for name, one in found.items()]
    said = "; ".join(
        f"{label} chips {si(one.read_s, 's')} of reading, {si(one.hops_s, 's')} of hops"
        for label, one in zip(labels, found.values(), strict=True)
    )
    return Figure(
        key="machines.token",
        alt=f"Stacked bars of microseconds a token, reading and hops: {said}.",
        caption=f"70 billion parameters in 8 bits, {LAYERS} layers, {1e6 * HOP_S:g} µs a layer for whatever crosses chips and waits. With SRAM a token is made of hops, and bandwidth hardly matters any more. "
        f"The best is {count(max(1 / one.token_s for one in found.values()))} tokens/s.",
        parts=lambda wide: [
            Bars(
                Scale("µs a token"),
                labels,
                [
                    Series("reading weights", [1e6 * one.read_s for one in found.values()], 0),
                    Series("hops", [1e6 * one.hops_s for one in found.values()], 2),
                ],
                stacked=True,
            )
        ],
    )

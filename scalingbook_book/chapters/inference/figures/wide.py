"""Figure of wide expert parallelism: the parts of a decode step, by the number of GPUs that share the experts."""

from dataclasses import replace

from scalingbook_book.reader.explorers.view import Bars, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MEMORY, NETWORK
from scalingbook_lib import inference, models
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.units import FP8, si

DEEPSEEK = models.find("DeepSeek-V3")
SLOTS = 256 + 32  # experts of a layer, with the extra replicas of popular ones
assert DEEPSEEK.experts
REPLICATED = replace(DEEPSEEK, experts=replace(DEEPSEEK.experts, E=SLOTS))
H800 = replace(H100, name="H800", links=8)
USERS, S = 88, 4989  # sequences per GPU and their length
SIZES = (24, 32, 48, 72, 96, 144)  # GPUs that share the experts
_PARTS = {"weights": MEMORY, "cache": CACHE, "other": IDLE, "dispatch and combine": NETWORK}


def decode_on(n: int) -> inference.InferenceStep:
    """The decode step of a group of n GPUs, at peak rates and without overlap."""
    nodes = Cluster(chip=H800, chips=n, nic_bytes_per_s=40e9)
    layout = Layout(tp=n, ep=n, attention_dp=n, weights=FP8, compute=FP8, dispatch=FP8)
    return inference.decode(REPLICATED, nodes, layout, batch=USERS * n, S=S)


def parts_of(step: inference.InferenceStep) -> dict[str, float]:
    """Seconds by `_PARTS`."""
    found = {
        "weights": step.terms["weights"],
        "cache": step.terms["KV"],
        "dispatch and combine": sum(step.collectives[f"tokens {way} experts"] for way in ("to", "from")),
    }
    return found | {"other": step.total_s - sum(found.values())}


def group_sizes() -> Figure:
    """What does a larger group of GPUs gain in a decode step, and what does it cost?"""
    found = {n: parts_of(decode_on(n)) for n in SIZES}
    first, last = (found[n] for n in (SIZES[0], SIZES[-1]))
    bars = "; ".join(
        f"{n} GPUs: {', '.join(f'{name} {si(parts[name], "s")}' for name in _PARTS)}"
        for n, parts in found.items()
    )
    return Figure(
        key="inference.group_sizes",
        alt=f"Stacked bars of a decode step by the number of GPUs that share the experts. {bars}.",
        caption=f"Decode step of DeepSeek-V3 by the number of GPUs that share its experts, with {USERS} sequences on "
        f"each GPU and nothing overlapped. From {SIZES[0]} to {SIZES[-1]} GPUs, the time to read the weights falls from "
        f"{si(first['weights'], 's')} to {si(last['weights'], 's')}, but dispatch and combine take "
        f"{si(last['dispatch and combine'], 's')} instead of {si(first['dispatch and combine'], 's')}. (H800 GPUs at "
        f"peak rates, 40 GB/s between nodes, {SLOTS} expert slots per layer, sequences of {S:,} tokens.)",
        parts=lambda _wide: [
            Bars(
                Scale("decode step", "s"),
                [f"{n} GPUs" for n in SIZES],
                [
                    Series(name, [parts[name] for parts in found.values()], color)
                    for name, color in _PARTS.items()
                ],
                stacked=True,
            )
        ],
    )

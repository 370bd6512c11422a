"""Explorer: load a cached prefix from host memory, a remote pool or SSDs, or compute it again."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    join_and,
    machine,
)
from scalingbook_lib import calibrated, inference, models
from scalingbook_lib.inference import Layout, Tier, TierLoad
from scalingbook_lib.units import FP8, count, si

MODELS = ("Llama 3 70B", "Qwen3 235B-A22B", "gpt-oss 120B", "MiniMax-M2.5", "DeepSeek-V3", "GLM-5")
MACHINES = ("H100 × 8", "H200 × 8", "B200 × 8")
REMOTE, SSD, FILES = 190e9, 4.8e9, 1.2e9
"""Bytes/s of a server: Mooncake's transfer engine over 8 × 400 Gb/s; an array of NVMe disks (Mooncake issue
3331, 2026-08); SGLang's file backend."""


def tiers(where: str, descriptor_s: float) -> tuple[Tier, ...]:
    """Return the tiers of a server, from the fastest to the slowest."""
    on = machine(where)
    host = on.chips * (on.chip.host_bytes_per_s or on.chip.pcie_bytes_per_s or 0.0)
    rates = {"host memory": host, "remote pool": REMOTE, "SSDs": SSD, "files": FILES}
    return tuple(Tier(name=name, bytes_per_s=rate, descriptor_s=descriptor_s) for name, rate in rates.items())


@lru_cache(maxsize=512)
def loaded(model: str, where: str, cached: int, new: int, block: int, tier: Tier) -> TierLoad:
    """Return the loading of `cached` tokens before `new` ones, in 8 bits, with calibrated efficiencies."""
    m, on = models.find(model), machine(where)
    layout = Layout(tp=on.chips, ep=on.chips if m.experts else 1, weights=FP8, compute=FP8, kv=FP8)
    reached = calibrated.serving(on.chip, FP8)
    return inference.load(m, on, layout, tier, P=cached + new, cached=cached, block=block, efficiency=reached)


def _tiers(*, model: str, where: str, cached: int, new: int, block: int, descriptor: float) -> View:
    places = tiers(where, descriptor * 1e-6)
    found = [loaded(model, where, cached, new, block, tier) for tier in places]
    slow = found[-1]
    return View(
        _verdict(found),
        (_bars(found), _curves(model, where, new, block, places, cached)),
        (
            Readout("keys and values", slow.prefix.nbytes, "B"),
            Readout("descriptors", slow.descriptors, "", count(slow.descriptors)),
            Readout("recompute", slow.recompute_s, "s"),
            Readout("break-even bandwidth of the server", *_even(slow)),
            Readout("TTFT without the cache", slow.prefix.whole_s, "s"),
            Readout("TTFT with host memory", found[0].overlapped_ttft_s, "s"),
        ),
        columns=2,
    )


def _even(one: TierLoad) -> tuple[float, str, str]:
    rate = one.break_even_bytes_per_s
    return (rate, "B/s", "") if rate < 1e15 else (0.0, "", "none: the descriptors alone take longer")


def _bars(found: list[TierLoad]) -> Bars:
    nbytes = [0.0, *(one.prefix.nbytes / one.tier.bytes_per_s for one in found)]
    pieces = [0.0, *(one.descriptors * one.tier.descriptor_s for one in found)]
    return Bars(
        Scale("time", "s"),
        ("recompute", *(one.tier.name for one in found)),
        (
            Series("compute", [found[0].recompute_s, *(0.0 for _ in found)], 1),
            Series("bytes", nbytes, 0),
            Series("descriptors", pieces, 5),
        ),
        stacked=True,
        title=f"{count(found[0].prefix.cached)} cached tokens",
    )


def _curves(model: str, where: str, new: int, block: int, places: tuple[Tier, ...], here: int) -> Chart:
    lengths = [2**e for e in range(8, 18)]
    runs = [[loaded(model, where, n, new, block, tier) for n in lengths] for tier in places]
    lines = [
        Curve(tier.name, lengths, [one.overlapped_ttft_s for one in run], color)
        for tier, run, color in zip(places, runs, (0, 2, 3, 4), strict=True)
    ]
    whole = Curve("no cache", lengths, [one.prefix.whole_s for one in runs[0]], 5, dashed=True)
    return Chart(
        Scale("cached tokens", "", "pow2"),
        Scale("time to first token", "s", "log"),
        (whole, *lines, RefLine("", here)),
        title=f"TTFT with {count(new)} new tokens",
    )


def _verdict(found: list[TierLoad]) -> str:
    one = found[0]
    size, again = si(one.prefix.nbytes, "B"), si(one.recompute_s, "s")
    said = f"Computing {count(one.prefix.cached)} tokens ({size}) again takes {again}. "
    pay = [_spoken(run) for run in found if run.pays]
    if not pay:
        return f"{said}No tier loads them faster, so it is better to compute them again."
    told = ", ".join(f"{si(run.load_s, 's', 2)} from {_spoken(run)}" for run in found)
    said += f"Loading them takes {told}. "
    losers = [_spoken(run) for run in found if not run.pays]
    but = f", but not from {join_and(losers)}" if losers else ""
    return f"{said}Loading pays off from {join_and(pay)}{but}."


def _spoken(one: TierLoad) -> str:
    return {"remote pool": "a remote pool", "files": "a file system"}.get(one.tier.name, one.tier.name)


TIERS = Explorer(
    key="inference.tiers",
    title="Load a cached prefix, or compute it again?",
    question="From which tier of memory is a cached prefix faster to load than to compute again?",
    controls={
        "model": Choice("model, in 8 bits", MODELS),
        "where": Choice("server", MACHINES, "H200 × 8"),
        "cached": Slider("cached tokens", 256, 2**17, 2**15, "pow2", "tokens"),
        "new": Slider("new tokens", 64, 8192, 512, "pow2", "tokens"),
        "block": Slider("tokens per block", 8, 256, 64, "pow2", "tokens"),
        "descriptor": Slider("time per descriptor", 0.0, 10.0, 1.0, step=0.5, unit="µs"),
    },
    view=_tiers,
)

"""Explorer: arithmetic intensity of attention and KV-cache size for MHA, GQA, MQA and MLA."""

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Latent, arithmetic
from scalingbook_lib.units import BF16, INT8, DType, count

N, H, L = 64, 128, 80  # Llama 3 70B with K left open
_K = {"MHA 64": 64, "GQA 16": 16, "GQA 8": 8, "MQA 1": 1, "MLA": 0}  # heads of keys and values
SHARED = tuple(_K)
TYPES = {"bf16": BF16, "int8": INT8}
_FREE = 64e9  # bytes for caches in the second chart: four chips of 16 GB


def latent() -> Latent:
    """That of DeepSeek-V3."""
    found = models.find("DeepSeek-V3").latent
    assert found
    return found


def intensity(shared: str, S: int, T: int, cache: DType) -> arithmetic.Intensity:
    """Arithmetic intensity of the attention of one KV head, in FLOPs per byte."""
    if not _K[shared]:
        return arithmetic.latent_intensity(latent(), N, S, T=T, cache=cache)
    return arithmetic.attention_intensity(T, S, N // _K[shared], H=H, cache=cache)


def _at(shared: str, S: int, T: int, cache: DType) -> float:
    """FLOPs per byte, with a context of at least T tokens."""
    return intensity(shared, max(S, T), T, cache).flops_per_byte


def _rounded(value: float) -> str:
    return count(round(value)) if value >= 100 else f"{value:.3g}"


def per_token(shared: str, cache: DType) -> float:
    """KV-cache bytes per token, over all layers."""
    elements = 2 * _K[shared] * H if _K[shared] else latent().kv_rank + latent().rope
    return L * elements * cache.bytes


def _intensity(*, shared: str, chip: str, cache: str, S: int, T: int) -> View:
    kind, c = TYPES[cache], chips.find(chip)
    ridge = rules.ridge(c)
    now = _at(shared, S, T, kind)
    bytes_of = {name: per_token(name, kind) for name in SHARED}
    return View(
        _verdict(shared, now, ridge, T, chip),
        (_curves(shared, S, T, kind=kind, ridge=ridge, chip=chip), _caches(bytes_of, S)),
        (
            Readout("FLOPs per byte", now),
            Readout(f"ridge point of {chip}", ridge),
            Readout("cache per token", bytes_of[shared], "B"),
            Readout("cache per sequence", bytes_of[shared] * S, "B"),
        ),
        columns=2,
    )


def _curves(shared: str, S: int, T: int, *, kind: DType, ridge: float, chip: str) -> Chart:
    asked = [2**e for e in range(13)]
    lines = [
        Curve(name, asked, [_at(name, S, t, kind) for t in asked], i, dashed=name != shared)
        for i, name in enumerate(SHARED)
    ]
    now = _at(shared, S, T, kind)
    here = Points("", [T], [now], [_rounded(now)], SHARED.index(shared))
    ref = RefLine(f"ridge point of {chip}", ridge, axis="y")
    x, y = Scale("query tokens per step, T", "", "pow2"), Scale("FLOPs per byte", "", "log")
    return Chart(x, y, (*lines, here, ref), title="From decode (T = 1) to prefill")


def _caches(bytes_of: dict[str, float], S: int) -> Bars:
    names = [f"{name}: {count(int(_FREE // (n * S)))} fit" for name, n in bytes_of.items()]
    series = (Series("bytes", [n * S for n in bytes_of.values()], 2),)
    return Bars(
        Scale("cache of one sequence", "B"),
        names,
        series,
        title="Cache of one sequence, and how many fit in 64 GB",
    )


def _verdict(shared: str, now: float, ridge: float, T: int, chip: str) -> str:
    tokens = "one query token" if T == 1 else f"{count(T)} query tokens per step"
    flops = "FLOP" if _rounded(now) == "1" else "FLOPs"
    said = (
        f"{shared}, {tokens}: {_rounded(now)} {flops} per byte, and the ridge point of {chip} is {ridge:.0f}"
    )
    if now >= ridge:
        return f"{said}. Attention is compute-bound."
    return (
        f"{said}. Attention is memory-bound: reading the cache takes {ridge / now:.3g} times as long as "
        "computing."
    )


INTENSITY = Explorer(
    key="inference.intensity",
    title="Arithmetic intensity of attention: MHA, GQA, MQA and MLA",
    question="When does attention become compute-bound, and how many sequences fit? (80 layers of 64 heads)",
    controls={
        "shared": Choice("keys and values", SHARED, SHARED[2]),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
        "cache": Choice("KV-cache dtype", tuple(TYPES)),
        "S": Slider("context length", 512, 131072, 8192, "pow2"),
        "T": Slider("query tokens per step, T", 1, 4096, 1, "pow2"),
    },
    view=_intensity,
)

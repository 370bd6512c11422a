"""Explorers of diffusion compared with token-by-token decode, and of the time to generate a video."""

from scalingbook_book.chapters.architectures.case import WAN
from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
    sig3,
)
from scalingbook_lib.inference import Diffusion, diffusion
from scalingbook_lib.machines import chips
from scalingbook_lib.models.arithmetic.mixers import bidirectional_flops, video_tokens
from scalingbook_lib.units import count, percent, si

_BATCHES = [2.0**e for e in range(9)]


def _blocks(*, chip: str, billions: int, T: int, passes: int, B: int) -> View:
    def at(batch: float) -> Diffusion:
        return diffusion(billions * 1e9, chips.find(chip), T=T, passes=passes, batch=batch)

    now = at(B)
    chart = Chart(
        Scale("concurrent requests", "", "pow2"),
        Scale("time", "s", "log"),
        (
            Curve("diffusion", _BATCHES, [at(b).block_s for b in _BATCHES], 0),
            Curve("token by token", _BATCHES, [at(b).one_by_one_s for b in _BATCHES], 1),
            RefLine("now", B),
        ),
    )
    faster = "Diffusion is" if now.gain > 1 else "Token-by-token decode is"
    ratio = max(now.gain, 1 / now.gain)
    even = f"above {sig3(now.even_batch)} requests" if now.even_batch > 1 else "at any number of requests"
    return View(
        f"{faster} {sig3(ratio)} times as fast for {pluralize(B, 'concurrent request')}. "
        f"Token-by-token decode is faster {even}.",
        (chart,),
        (
            Readout("diffusion", now.block_s, "s", si(now.block_s, "s")),
            Readout("token by token", now.one_by_one_s, "s", si(now.one_by_one_s, "s")),
            Readout("FLOPs relative to token by token", passes, "×", f"{passes}×"),
            Readout("tokens/s", B * T / now.block_s, "", sig3(B * T / now.block_s)),
        ),
    )


BLOCKS = Explorer(
    key="architectures.blocks",
    title="Diffusion or token by token?",
    question="Up to how many concurrent requests is diffusion faster?",
    controls={
        "chip": Chips("chip", CHIPS, "H100"),
        "billions": Slider("parameters, in billions", 1, 32, 8, "pow2"),
        "T": Slider("tokens per block", 32, 1024, 256, "pow2"),
        "passes": Slider("passes", 4, 256, 64, "pow2"),
        "B": Slider("concurrent requests", 1, 256, 1, "pow2"),
    },
    view=_blocks,
)
SIZES = {"480p": (480, 832), "720p": (720, 1280), "1080p": (1088, 1920)}


def _video(*, seconds: int, size: str, steps: int, guided: str, n: int) -> View:
    tokens = video_tokens(16 * seconds + 1, *SIZES[size])
    weights, attention = bidirectional_flops(WAN.params, tokens, WAN.D, WAN.L)
    forwards = steps * (2 if guided == "two" else 1)
    total = forwards * (weights + attention)
    took = total / (n * chips.H100.bf16_flops_per_s / 2)
    share = percent(attention / (weights + attention))
    bars = Bars(
        Scale("a forward pass", "FLOPs"),
        ["weights", "attention"],
        [Series("", [weights, attention], 0)],
    )
    return View(
        f"{pluralize(seconds, 'second')} of {size} video {'becomes' if seconds == 1 else 'become'} "
        f"{count(tokens)} tokens. Attention takes {share} of the FLOPs. "
        f"{pluralize(n, 'H100')} at half of the peak rate would take {si(took, 's')}.",
        (bars,),
        (
            Readout("tokens", tokens, "", count(tokens)),
            Readout("passes", forwards, "", count(forwards)),
            Readout("FLOPs", total, "", si(total, "FLOPs")),
            Readout("compute seconds per second of video", took / seconds, "", sig3(took / seconds)),
        ),
    )


VIDEO = Explorer(
    key="architectures.video",
    title="Time to generate a video",
    question="How long does it take to generate a video, and how much of that is attention?",
    controls={
        "seconds": Slider("seconds of video at 16 frames/s", 1, 20, 5),
        "size": Choice("resolution", tuple(SIZES), "720p"),
        "steps": Slider("diffusion steps", 4, 52, 50, step=2),
        "guided": Choice("passes per step", ("two", "one"), "two"),
        "n": Slider("H100 GPUs", 1, 64, 8, "pow2"),
    },
    view=_video,
)

"""Figures of memory: saved units per layer, bytes per parameter, keys and values per token."""

from scalingbook_book.chapters.transformers.explorers.kv import kinds
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    EXPERTS,
    MATH,
    MEMORY,
    NETWORK,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, FP32, binary
from scalingbook_lib.words import pluralize

WIDE = models.Transformer(name="wide", D=4096, F=16384, L=1, N=32, K=32, H=128, V=1)
POLICIES: dict[arithmetic.Policy, str] = {
    "all": "everything",
    "dots": "all matmuls",
    "dots_no_batch": "weight matmuls",
    "full": "layer input only",
}


def kept() -> Figure:
    """The units of one layer under four policies."""
    totals: dict[arithmetic.Policy, float] = {
        policy: arithmetic.activations(WIDE, 1, 1024, policy).units for policy in POLICIES
    }
    said = ", ".join(f"{POLICIES[policy]} {units:.0f}" for policy, units in totals.items())
    return Figure(
        key="transformers.kept",
        alt="Four rows of unit squares, one square for an array of B by T by D in bf16. Units kept: "
        f"{said}. In the first row, most are scores and elementwise arrays of the MLP.",
        caption="Activations that one layer keeps for the backward pass, in units of one array [B, T, D] (D "
        "= 4096, F = 4D, T = 1,024). Recomputing everything except the weight matmuls reduces "
        f"{totals['all']:.0f} units to {totals['dots_no_batch']:.0f}, and keeping only the layer's "
        f"input reduces them to {totals['full']:.0f}.",
        parts=lambda wide: [_units(wide, totals)],
    )


def _colors(policy: arithmetic.Policy) -> list[int]:
    """One color per unit: scores, elementwise arrays, norms, matmul outputs."""
    units: list[int] = []
    for term in arithmetic.activations(WIDE, 1, 1024, policy).terms:
        scores = term.name in ("probabilities", "scores")
        apart = {"MLP, pointwise": EXPERTS, "norms": CACHE}
        units += [NETWORK if scores else apart.get(term.name, MEMORY)] * round(
            term.value / (2 * 1024 * WIDE.D)
        )
    return sorted(units)


def _units(wide: float, totals: dict[arithmetic.Policy, float]) -> Sketch:
    line = 31
    side = (wide - 8) / line
    names = {MEMORY: "matmul outputs", NETWORK: "scores", EXPERTS: "elementwise", CACHE: "norms"}
    shapes, y = key(wide, 4.0, names)
    y += 14
    for policy, units in totals.items():
        colors = _colors(policy)
        rows = [colors[i : i + line] for i in range(0, len(colors), line)]
        shapes.append(_start(4, y, f"{POLICIES[policy]}: {units:.0f}"))
        shapes.append(Cells(x=4, y=y + 7, rows=rows, wide=side, high=min(side, 16)))
        y += 34 + min(side, 16) * len(rows)
    return Sketch(wide, y - 20, shapes)


def _start(x: float, y: float, text: str) -> Words:
    return Words(x=x, y=y, text=text, align="start")


def sixteen_bytes() -> Figure:
    """Which bytes per parameter are counted in which account?"""
    accounts = _accounts()
    said = ", ".join(f"{sum(parts.values()):.0f} ({name})" for name, parts in accounts.items())
    return Figure(
        key="transformers.sixteen_bytes",
        alt="One row for each way to count the bytes per parameter in training, with one square per "
        f"byte: {said}.",
        caption="Bytes per parameter of training with Adam, counted in five ways. The counts differ in what "
        "they include, not in what Adam needs. This book counts "
        f"{arithmetic.training_state(1.0).bytes_per_parameter:.0f} bytes per parameter unless it "
        "says otherwise.",
        parts=lambda wide: [_bytes(wide, accounts)],
    )


def _accounts() -> dict[str, dict[str, float]]:
    """Bytes per parameter by what they are, in each account."""
    state = arithmetic.training_state
    whole = state(1.0)
    saved = {term.name: term.value for term in whole.terms if term.name != "gradients"}
    known = {
        "no gradients, no master copy": state(1.0, gradients=None, master=None),
        "no master copy": state(1.0, master=None),
        "this book": whole,
        "fp32 gradients": state(1.0, gradients=FP32),
    }
    counted = {name: {term.name: term.value for term in each.terms} for name, each in known.items()}
    return dict(
        sorted((counted | {"in a checkpoint": saved}).items(), key=lambda account: sum(account[1].values()))
    )


def _bytes(wide: float, accounts: dict[str, dict[str, float]]) -> Sketch:
    colors = {
        "weights": MEMORY,
        "gradients": MATH,
        "first moment": NETWORK,
        "second moment": EXPERTS,
        "master weights": CACHE,
    }
    side = min((wide - 60) / 18, 17.0)
    shapes, y = key(wide, 4.0, {color: name for name, color in colors.items()})
    y += 14
    for name, parts in accounts.items():
        cells = [colors[part] for part, size in parts.items() for _ in range(round(size))]
        right = Words(x=wide - 4, y=y + 7 + side - 3, text=f"{len(cells)}", align="end", bold=True)
        shapes += [_start(4, y, name), Cells(x=4, y=y + 7, rows=[cells], wide=side, high=side), right]
        y += side + 32
    return Sketch(wide, y - 20, shapes)


def heads() -> Figure:
    """Four kinds of attention, and what each keeps per token."""
    made = kinds("Llama 3 70B")
    shown = {kind: made[kind] for kind in ("MHA", "GQA", "MQA", "MLA")}
    nbytes = {kind: arithmetic.kv_cache(model, 1).bytes_per_token for kind, model in shown.items()}
    fits = {kind: _fits(model) for kind, model in shown.items()}
    said = "; ".join(
        f"{kind} {binary(nbytes[kind])} per token, {pluralize(fits[kind], 'sequence')}" for kind in shown
    )
    return Figure(
        key="transformers.heads",
        alt="Four panels. 64 query heads above; below them what is kept per token: 64 key-value heads, 8, one, or "
        f"one latent vector. {said}.",
        caption="KV cache of four kinds of attention, with 64 query heads each. Query heads determine the "
        "compute, while key-value heads determine the memory: the width of the lower boxes is "
        "proportional to the bytes. The numbers below are the 8,192-token sequences that fit on 16 "
        "TPU v5e next to the bf16 weights of a Llama 3 70B with that attention.",
        parts=lambda wide: [_panels(wide, shown, nbytes, fits)],
    )


def _fits(model: models.Transformer) -> int:
    free = 16 * V5E.hbm_bytes - BF16.bytes * model.params
    return int(free // arithmetic.kv_cache(model, 8192).nbytes)


def _panels(
    wide: float, shown: dict[str, models.Transformer], nbytes: dict[str, float], fits: dict[str, int]
) -> Sketch:
    columns = 4 if wide > 400 else 2
    across = wide / columns
    tick = (across - 16) / 64
    shapes: list[Shape] = []
    for k, (kind, model) in enumerate(shown.items()):
        x, y = across * (k % columns) + 8, 172.0 * (k // columns)
        middle = x + 32 * tick
        keys = 1 if model.latent else model.K
        # all four on one scale: the keys and values of one of 64 heads are as wide as its query head
        width = 64 * tick * nbytes[kind] / nbytes["MHA"] / keys
        kept = [[NETWORK if model.latent else CACHE] * keys]
        name = "one latent vector" if model.latent else pluralize(keys, "key-value head")
        shapes += [
            Words(x=middle, y=y + 14, text=kind, bold=True),
            Words(x=middle, y=y + 36, text=f"{model.N} query heads", quiet=True),
            Cells(x=x, y=y + 42, rows=[[MATH] * model.N], wide=tick, high=20, air=min(1, tick / 3)),
            Words(x=middle, y=y + 82, text=name, quiet=True),
            Cells(
                x=middle - width * keys / 2, y=y + 88, rows=kept, wide=width, high=20, air=min(1, width / 3)
            ),
            Words(x=middle, y=y + 128, text=f"{binary(nbytes[kind])} per token"),
            Words(x=middle, y=y + 145, text=f"{fits[kind]} sequences"),
        ]
    return Sketch(wide, 152.0 + 172 * (4 // columns - 1), shapes)

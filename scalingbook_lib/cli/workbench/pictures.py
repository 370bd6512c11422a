"""What does an answer look like? A picture of each panel, drawn as the book's explorers are."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from scalingbook_lib import roofline
from scalingbook_lib.cli.answer import Line
from scalingbook_lib.cli.roofline import counted, times
from scalingbook_lib.cli.workbench.answers import answered, read
from scalingbook_lib.cli.workbench.setup import Setup
from scalingbook_lib.machines import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.reader import draw
from scalingbook_lib.reader.draw.palette import LIGHT
from scalingbook_lib.reader.explorers.view import Bars, Chart, Curve, Points, RefLine, Scale, Series, View
from scalingbook_lib.units import BF16, si


def drawn(setup: Setup, panel: str) -> dict[str, str]:
    """The panel's picture, for a wide place and for a narrow one, and what it shows in a sentence."""
    view = PICTURES[panel](setup)
    return {
        "wide": draw.figure(view, wide=True),
        "narrow": draw.figure(view, wide=False),
        "told": view.verdict,
    }


def _values(setup: Setup, command: str) -> Any:
    return answered(setup, command).answer.values


def _held(setup: Setup) -> View:
    """What the model takes, beside what both machines have."""
    values = _values(setup, "model")
    rows = {
        "weights in bf16": 2 * values["parameters"]["total"],
        "training state": values["training_state"]["total_bytes"],
        f"KV cache of {values['kv_cache']['context_tokens']:,} tokens": values["kv_cache"]["total_bytes"],
    }
    machines = {name: read(setup, name)["machine"] for name in ("plan", "serve")}
    rows |= {f"HBM of {one.name}": one.chips * one.chip.hbm_bytes for one in machines.values()}
    bars = Bars(Scale("bytes, logarithmic", "B", "log"), [*rows], (Series("bytes", [*rows.values()], 0),))
    chip = machines["plan"].chip
    told = (
        f"{values['model']} takes {si(rows['weights in bf16'], 'B')} in bf16; the training state alone fills "
        f"{rows['training state'] / chip.hbm_bytes:.3g} times the HBM of one {chip.name}."
    )
    return View(told, (bars,))


def _served(setup: Setup) -> View:
    """The ways to serve that none beats, and the terms of the cheapest one's decode step."""
    values = _values(setup, "serve")
    step = _step(values, "a decode step", "decode_step_s")
    points: list[dict[str, Any]] = values["search"]["front"]
    itl, costs = [p["itl_s"] for p in points], [p["cost_per_million_tokens"] for p in points]
    front = Chart(
        Scale("time between two tokens", "s", "log"),
        Scale(f"{values['search']['cost_unit']} for a million output tokens", "", "log"),
        (
            Curve("none beats these", itl, costs, 0),
            Points("the cheapest", itl[-1:], costs[-1:], ["cheapest"], 1),
        ),
        title="Latency against cost",
    )
    every = si(itl[-1], "s")
    told = f"{step.verdict} This is the cheapest way: with its prompts, a token comes every {every}."
    return View(told, (front, *step.panels))


def _step(values: Any, what: str, total: str) -> View:
    terms, held = values["terms_s"], values["memory_bytes_by_part"]
    times = Bars(Scale("time", "s"), [what], _stack(terms), stacked=True, title="Where the time goes")
    memory = Bars(
        Scale("bytes", "B"), ["a chip"], _stack(held),
        stacked=True, refs=(RefLine("HBM", values["hbm_bytes"]),), title="What a chip holds",
    )  # fmt: skip
    longest = max(terms, key=lambda name: terms[name])
    share = f"{terms[longest] / sum(terms.values()):.0%}".replace("%", " %")
    told = f"{what} takes {si(values[total], 's')}, of which {share} is {longest}"
    return View(
        f"{told[0].upper()}{told[1:]}; a chip holds {si(values['memory_bytes'], 'B')}.", (times, memory)
    )


def _stack(parts: dict[str, float]) -> tuple[Series, ...]:
    """A colour for each part; where there are more parts than colours, one for all of the smallest."""
    shown = {name: n for name, n in parts.items() if n}
    if len(shown) > len(LIGHT):
        small = sorted(shown, key=lambda name: shown[name])[: 1 - len(LIGHT)]
        shown["the rest"] = sum(shown.pop(name) for name in small)
    return tuple(Series(name, [n]) for name, n in shown.items())


def _roofs(setup: Setup) -> View:
    """The products of the MLP, in the best training step and in the cheapest decode step."""
    found = products(setup)
    curves = []
    for at, chip in enumerate({one.chip.name: one.chip for one in found.values()}.values()):
        top, ridge = chip.bf16_flops_per_s, chip.bf16_flops_per_s / chip.hbm_bytes_per_s
        curves.append(Curve(chip.name, [0.5, ridge, 2.0**13], [0.5 * top / ridge, top, top], at))
    points = [
        Points(name, [one.line.intensity], [one.line.attained_flops_per_s], [name], len(curves) + at)
        for at, (name, one) in enumerate(found.items())
    ]
    chart = Chart(
        Scale("FLOPs for each byte moved", "", "log"),
        Scale("FLOPs/s of a chip", "", "log"),
        (*curves, *points),
    )
    told = (f"{name} is {one.line.bound} on {one.chip.name}" for name, one in found.items())
    return View(f"A product of the MLP: {'; '.join(told)}.", (chart,))


@dataclass(frozen=True, slots=True)
class Product:
    """X[B, D] · W[D, F] in bf16 on one chip."""

    chip: Chip
    shape: tuple[float, float, float]
    line: roofline.Roofline

    def derivation(self, name: str) -> Iterator[Line]:
        """FLOPs, bytes and times, each after the name of what the product is of."""
        count = counted(self.line, self.shape, (BF16.bytes, BF16.bytes, BF16.bytes))
        return (replace(step, name=f"{name}: {step.name}") for step in (*count, *times(self.line)))


def products(setup: Setup) -> dict[str, Product]:
    """A product of the MLP in the best training step, and in the cheapest decode step."""
    return {"training": _product(setup, "plan"), "decoding": _product(setup, "serve")}


def _product(setup: Setup, command: str) -> Product:
    """One product of the MLP as a chip sees it, with the tokens that the best way gives it."""
    typed, values = read(setup, command), _values(setup, command)
    model: Transformer = typed["model"]
    way = values["plan" if command == "plan" else "layout"]
    if command == "plan":
        tokens = way["microbatch"] * typed["T"] / way["cp"]
    else:
        tokens = values["sequences"] / way["attention_dp"]
    F = model.F
    if (experts := model.experts) is not None:  # of the tokens of all chips that hold an expert once
        F, tokens = experts.F, tokens * way["ep"] * experts.k / experts.E
    chip: Chip = typed["machine"].chip
    shape = (max(tokens, 1), model.D, max(F // way["tp"], 1))
    return Product(chip, shape, roofline.matmul(*shape, chip))


PICTURES = {
    "model": _held,
    "roofline": _roofs,
    "plan": lambda setup: _step(_values(setup, "plan"), "a training step", "step_s"),
    "serve": _served,
}

"""Does a plan exist on the pod, and what can it reach? X data ways, Y tensor ways, and everything checked."""

import math
from dataclasses import dataclass
from functools import cached_property

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Switch,
    View,
    torus,
    word,
)
from scalingbook_lib import models, rules
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.rules import FsdpWithTensor
from scalingbook_lib.steps.placement import place
from scalingbook_lib.training import Plan, PlanError, effective_width
from scalingbook_lib.training.feasible import reasons
from scalingbook_lib.units import percent

MODELS = ("LLaMA-3 8B", "LLaMA-3 70B", "LLaMA-3 405B", "Qwen3 32B", "Gemma-2 27B")
PODS = (
    "TPU v5p 16x20x28",
    "TPU v5p 16x16x32",
    "TPU v5p 16x16x16",
    "TPU v5p 8x16x16",
    "TPU v5p 8x8x8",
    "TPU v4 16x16x16",
    "TPU v5e 16x16",
    "TPU v6e 16x16",
)
WAYS = {
    "as many as there are": "all",
    "the largest power of two": "power",
    "shards that divide, and copies": "copies",
}
_T = 4096
_YS = [2 ** (e / 8) for e in range(49)]  # 1 to 64


@dataclass(frozen=True)
class Board:
    """A model on a pod, sequences of 4,096 tokens; X data ways, Y tensor ways."""

    model: models.Transformer
    pod: Slice
    sequences: int
    Y: int
    ways: str
    whole: bool  # the width of the MLP, or that of a whole layer

    @property
    def X(self) -> int:
        """Data ways of that kind, beside Y."""
        most = self.pod.chips // self.Y
        return 2 ** (most.bit_length() - 1) if self.ways == "power" else most

    @property
    def F(self) -> float:
        """Matrices as wide, or the width that stands for the whole layer."""
        return effective_width(self.model) if self.whole else self.model.F

    @property
    def axes(self) -> dict[str, int]:
        """Torus axes of each."""
        return {"data_axes": len(self.pod.shape) - 1, "tensor_axes": 1}

    def mixed(self, Y: float) -> FsdpWithTensor:
        """The ratios with Y tensor ways, on as many chips as X · Y."""
        chips_used = self.X * self.Y
        return rules.fsdp_with_tensor(
            self.sequences * _T, chips_used, self.F, chips_used / Y, self.pod.chip, **self.axes
        )

    @cached_property
    def plan(self) -> Plan:
        """With more data ways than sequences, several chips share one; copies take what D does not divide."""
        shared = self.X // math.gcd(self.X, self.sequences) if self.sequences < self.X else 1
        shards = math.gcd(self.X, self.model.D) if self.ways == "copies" else self.X
        cp = shared if shards % shared == 0 else 1
        return Plan(fsdp=shards // cp, cp=cp, dp=self.X // shards, tp=self.Y)

    @cached_property
    def found(self) -> dict[str, str]:
        """What the library has against it, by a word."""
        return {word(why): why for why in reversed(reasons(self.model, self.plan, _T, self.pod))}

    def checks(self) -> dict[str, tuple[bool, str]]:
        """Whether each thing works out, in a few words."""
        m, X, Y = self.model, self.X, self.Y
        idle = self.pod.chips - X * Y
        return {
            "chips": (not idle, f"{X:,} · {Y} = {X * Y:,}" + (f", {idle:,} idle" if idle else ", all")),
            "width D": ("D" not in self.found, f"{m.D:,} over {self.plan.fsdp * self.plan.cp:,}"),
            "width F": ("F" not in self.found, f"{m.F:,} over {Y}"),
            "heads": ("heads" not in self.found, f"{m.N} and {m.K} over {Y}"),
            "sequences": self._sequences(),
            "torus": self._torus(idle),
        }

    def _sequences(self) -> tuple[bool, str]:
        """Whole ones for each data rank, or even pieces of one."""
        p = self.plan
        try:
            each = p.microbatches(self.sequences)
        except PlanError:
            return False, f"{self.sequences:,} over {p.fsdp * p.dp:,}"
        if "tokens" in self.found:
            return False, f"{_T:,} tokens in {2 * p.cp:,} · {p.tp} pieces"
        return True, f"{each:,} to {p.cp:,} chips" if p.cp > 1 else f"{each:,} to a data rank"

    def _torus(self, idle: int) -> tuple[bool, str]:
        """Rings close only over whole axes."""
        if idle:
            return False, "no mesh of all chips"
        laid = place(self.pod, (self.Y, self.plan.cp, 1, self.plan.fsdp, 1, self.plan.dp))
        tensor = laid.networks["Y"]
        if not tensor:
            return True, "no TP: all axes for FSDP"
        sides = " · ".join(f"{n.size}" for n in tensor)
        rings = all(getattr(n, "wrapped", True) for n in tensor)
        return rings, f"TP on {'rings' if rings else 'a line'} of {sides}"


def _board(*, model: str, pod: str, Y: int, ways: str, sequences: int, dial: float, whole: bool) -> View:
    b = Board(models.find(model), torus(pod), sequences, Y, WAYS[ways], whole)
    checks, here = b.checks(), b.mixed(Y)
    best = rules.best_fsdp_degree(sequences * _T, b.X * Y, b.F, **b.axes)
    return View(
        _verdict(b, checks, here, dial),
        (_grid(checks), _chart(b, here, dial)),
        (
            Readout("tokens a chip", sequences * _T / (b.X * Y), "", f"{sequences * _T / (b.X * Y):,.0f}"),
            Readout("FSDP over arithmetic", here.data, "×"),
            Readout("TP over arithmetic", here.tensor, "×"),
            Readout("ideal data ways", best, "", f"{best:,.0f}"),
            Readout.percent("at most, of the peak", 1 / here.slowdown(dial)),
            Readout.percent("with TP waited for", 1 / (max(1.0, here.data) + here.tensor)),
        ),
    )


def _grid(checks: dict[str, tuple[bool, str]]) -> Grid:
    cells = [[Cell(text, 2 if ok else 1, level=0.6)] for ok, text in checks.values()]
    return Grid("Green works out, orange does not", list(checks), ("",), cells)


def _chart(b: Board, here: FsdpWithTensor, dial: float) -> Chart:
    made = [b.mixed(y) for y in _YS]
    return Chart(
        Scale("tensor ways Y", "", "log", _YS[0], _YS[-1]),
        Scale("communication over arithmetic", "×", "log", 0.05, 20),
        (
            Curve("FSDP", _YS, [one.data for one in made], 0),
            Curve("TP", _YS, [one.tensor for one in made], 1),
            Curve("together", _YS, [one.ratio(dial) for one in made], 2, dashed=True),
            RefLine("hidden below", 1, axis="y"),
            Points("", [b.Y], [here.ratio(dial)], [f"{here.ratio(dial):.3g}"], 2),
        ),
        title="Closed forms, for rings",
    )


def _verdict(b: Board, checks: dict[str, tuple[bool, str]], here: FsdpWithTensor, dial: float) -> str:
    wrong = [name for name, (ok, _) in checks.items() if not ok]
    said = f"{b.X:,} · {b.Y} ways on {b.pod.name}: "
    ceiling = percent(1 / here.slowdown(dial))
    reach = "hides what it sends" if here.ratio(dial) <= 1 else f"would reach at most {ceiling} of the peak"
    if not wrong:
        return f"{said}everything divides, and it {reach}."
    if wrong == ["torus"]:
        return f"{said}everything divides and by the closed forms it {reach}, but TP has no ring."
    return f"{said}it {reach}, on paper; {', '.join(wrong)} do{'es' * (len(wrong) == 1)} not work out."


BOARD = Explorer(
    key="training_llama3.board",
    title="A plan on the pod, checked",
    question="Which data and tensor ways does a pod really offer, and does anything stay idle?",
    controls={
        "model": Choice("model", MODELS, "LLaMA-3 70B"),
        "pod": Choice("pod", PODS, PODS[0]),
        "Y": Slider("tensor ways Y", 1, 32, 4),
        "ways": Choice("data ways X", tuple(WAYS), "as many as there are"),
        "sequences": Slider("sequences of 4,096 tokens", 64, 8192, 1024, step=32),
        "dial": Slider("dial: 0 overlap, 1 in turn", 0.0, 1.0, 0.0, step=0.05),
        "whole": Switch("count attention too (effective width)", False),
    },
    view=_board,
)

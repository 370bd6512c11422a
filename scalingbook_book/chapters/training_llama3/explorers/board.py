"""Explorer of the plans on the pod and their limits: FSDP and data-parallel degree X, TP degree Y."""

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

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B", "Gemma-2 27B")
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
    "all chips": "all",
    "largest power of two": "power",
    "shards that divide, with replicas": "copies",
}
_T = 4096
_YS = [2 ** (e / 8) for e in range(49)]  # 1 to 64


@dataclass(frozen=True)
class Board:
    """A model on a pod, sequences of 4,096 tokens; data-parallel degree X, TP degree Y."""

    model: models.Transformer
    pod: Slice
    sequences: int
    Y: int
    ways: str
    whole: bool  # the width of the MLP, or that of a whole layer

    @property
    def X(self) -> int:
        """The data-parallel degree of that kind, for a TP degree of Y."""
        most = self.pod.chips // self.Y
        return 2 ** (most.bit_length() - 1) if self.ways == "power" else most

    @property
    def F(self) -> float:
        """The width of the MLP, or the effective width of a whole layer."""
        return effective_width(self.model) if self.whole else self.model.F

    @property
    def axes(self) -> dict[str, int]:
        """Torus axes of each."""
        return {"data_axes": len(self.pod.shape) - 1, "tensor_axes": 1}

    def mixed(self, Y: float) -> FsdpWithTensor:
        """The ratios with a TP degree of Y, on as many chips as X · Y."""
        chips_used = self.X * self.Y
        return rules.fsdp_with_tensor(
            self.sequences * _T, chips_used, self.F, chips_used / Y, self.pod.chip, **self.axes
        )

    @cached_property
    def plan(self) -> Plan:
        """With X above the sequences, several chips share one; replicas take what D does not divide."""
        shared = self.X // math.gcd(self.X, self.sequences) if self.sequences < self.X else 1
        shards = math.gcd(self.X, self.model.D) if self.ways == "copies" else self.X
        cp = shared if shards % shared == 0 else 1
        return Plan(fsdp=shards // cp, cp=cp, dp=self.X // shards, tp=self.Y)

    @cached_property
    def found(self) -> dict[str, str]:
        """What the library has against it, by a word."""
        return {word(why): why for why in reversed(reasons(self.model, self.plan, _T, self.pod))}

    def checks(self) -> dict[str, tuple[bool, str]]:
        """Whether each condition holds, with a short reason."""
        m, X, Y = self.model, self.X, self.Y
        idle = self.pod.chips - X * Y
        return {
            "chips": (not idle, f"{X:,} · {Y} = {X * Y:,}" + (f", {idle:,} idle" if idle else ", all used")),
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
            return False, f"{_T:,} tokens over {2 * p.cp:,} · {p.tp}"
        return True, f"{each:,} per {p.cp:,} chips" if p.cp > 1 else f"{each:,} per data rank"

    def _torus(self, idle: int) -> tuple[bool, str]:
        """Rings close only over whole axes."""
        if idle:
            return False, "some chips are idle"
        laid = place(self.pod, (self.Y, self.plan.cp, 1, self.plan.fsdp, 1, self.plan.dp))
        tensor = laid.networks["Y"]
        if not tensor:
            return True, "no TP, all axes for FSDP"
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
            Readout("tokens per chip", sequences * _T / (b.X * Y), "", f"{sequences * _T / (b.X * Y):,.0f}"),
            Readout("FSDP time over compute", here.data, "×"),
            Readout("TP time over compute", here.tensor, "×"),
            Readout("best degree X", best, "", f"{best:,.0f}"),
            Readout.percent("MFU ceiling", 1 / here.slowdown(dial)),
            Readout.percent("MFU ceiling with exposed TP", 1 / (max(1.0, here.data) + here.tensor)),
        ),
    )


def _grid(checks: dict[str, tuple[bool, str]]) -> Grid:
    cells = [[Cell(text, 2 if ok else 1, level=0.6)] for ok, text in checks.values()]
    return Grid("Green: works; orange: does not work", list(checks), ("",), cells)


def _chart(b: Board, here: FsdpWithTensor, dial: float) -> Chart:
    made = [b.mixed(y) for y in _YS]
    return Chart(
        Scale("TP degree Y", "", "log", _YS[0], _YS[-1]),
        Scale("communication over compute time", "×", "log", 0.05, 20),
        (
            Curve("FSDP", _YS, [one.data for one in made], 0),
            Curve("TP", _YS, [one.tensor for one in made], 1),
            Curve("combined", _YS, [one.ratio(dial) for one in made], 2, dashed=True),
            RefLine("can be hidden below", 1, axis="y"),
            Points("", [b.Y], [here.ratio(dial)], [f"{here.ratio(dial):.3g}"], 2),
        ),
        title="By the formulas, which assume rings",
    )


def _verdict(b: Board, checks: dict[str, tuple[bool, str]], here: FsdpWithTensor, dial: float) -> str:
    wrong = [name for name, (ok, _) in checks.items() if not ok]
    said = f"Degrees {b.X:,} × {b.Y} on {b.pod.name}: "
    ceiling = percent(1 / here.slowdown(dial))
    reach = (
        "can hide its communication" if here.ratio(dial) <= 1 else f"reaches at most {ceiling} of the peak"
    )
    if not wrong:
        return f"{said}all sizes divide evenly, and the plan {reach}."
    if wrong == ["torus"]:
        return (
            f"{said}all sizes divide evenly, and by the formulas, the plan {reach}. But TP does not get "
            "a ring."
        )
    return f"{said}on paper, the plan {reach}, but these checks fail: {', '.join(wrong)}."


BOARD = Explorer(
    key="training_llama3.board",
    title="Does a plan exist on this pod?",
    question="Which data-parallel and TP degrees does a pod allow, and how many chips stay idle?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "pod": Choice("pod", PODS, PODS[0]),
        "Y": Slider("TP degree Y", 1, 32, 4),
        "ways": Choice("data-parallel degree X", tuple(WAYS), "all chips"),
        "sequences": Slider("sequences of 4,096 tokens", 64, 8192, 1024, step=32),
        "dial": Slider("λ: 0 overlapped, 1 serialized", 0.0, 1.0, 0.0, step=0.05),
        "whole": Switch("include attention (effective width)", False),
    },
    view=_board,
)

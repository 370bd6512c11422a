"""Compiled prefill and decode programs, and their predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalingbook_lab.compiler import aot, slices
from scalingbook_lab.serve import decode, serving_step
from scalingbook_lab.serve.layout import Config
from scalingbook_lab.train import agreement
from scalingbook_lib import inference
from scalingbook_lib.inference import traffic as serving_traffic
from scalingbook_lib.inference.shape import shape as serving_shape
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.layers import pairs
from tools.compiled.case import Case, Moved, over, summed
from tools.compiled.serving import Serving


@dataclass(frozen=True, kw_only=True)
class Served(Case):
    """What both kinds of serving programs share."""

    @property
    def asked(self) -> tuple[Transformer, inference.Layout, int, int, int]:
        """Model, layout, sequences, new tokens of each, and total tokens of each."""
        raise NotImplementedError

    def flops(self) -> float:
        """Matmul FLOPs of one device by weights, plus those of attention pairs."""
        m, layout, B, T, S = self.asked
        s = serving_shape(m, layout)
        met = s.projections.met / layout.attention_dp + s.mlp.met + s.experts.met
        found = 2 * B * (T * met + s.head.met)
        own = B / (layout.attention_dp * layout.kv_batch * layout.kv_sequence)
        for kind in s.kinds:
            n = pairs(T, S, window=None if kind.window == float("inf") else int(kind.window))
            each = kind.expanded_flops if T == S else kind.flops
            found += n * each * (B / layout.attention_dp if T == S else own)
        return found

    def held(self) -> float:
        m, layout, B, T, S = self.asked
        where = _slice(self.devices)
        return inference.memory(m, layout, where, batch=B, S=S, step_tokens=B * T).total


@dataclass(frozen=True, kw_only=True)
class Reading(Served):
    """A model of any structure under tensor parallelism."""

    program: Serving

    @property
    def asked(self) -> tuple[Transformer, inference.Layout, int, int, int]:
        p = self.program
        return p.model, p.layout, p.B, p.T, p.S

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.program.mesh.shape

    def compiled(self) -> Any:
        lowered = self.program.lowered()
        with slices.stderr_silenced():
            return lowered.compile()

    def moved(self) -> Moved:
        m, layout, B, T, _ = self.asked
        where = _slice(self.devices)
        found: Moved = {}
        ways = "".join(axis for axis, n in self.sizes.items() if n > 1)
        for row in serving_traffic.rows(serving_shape(m, layout), where, inference.PEAK):
            if row.name != "candidates":  # each device keeps its own logits
                key = over(row.what.hlo, ways)
                found[key] = found.get(key, 0.0) + row.received(B * T, B)
        return found


@dataclass(frozen=True, kw_only=True)
class Engine(Served):
    """The laboratory's engine."""

    config: Config
    T: int

    @property
    def asked(self) -> tuple[Transformer, inference.Layout, int, int, int]:
        c = self.config
        return c.model, serving_step.plan(c), c.sequences, self.T, c.tokens

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.config.sizes

    def compiled(self) -> aot.Program:
        return decode.program(self.config, self.T, greedy=True)

    def moved(self) -> Moved:
        return summed(serving_step.predicted(self.config, self.T), self.sizes)


def _slice(devices: int) -> Slice:
    """Return a slice with that many devices; bytes do not depend on its shape."""
    return Slice(chips.V5E, agreement.SHAPES.get(devices, (2, 2)))

"""Compiled training steps, and their predictions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax

from scalingbook_lab.compiler import aot, slices
from scalingbook_lab.train import agreement
from scalingbook_lab.train.trainer import Trainer
from scalingbook_lib import training
from scalingbook_lib.hlo.predicted import KINDS
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.training.links import unpriced
from scalingbook_lib.training.shape import shape
from scalingbook_lib.training.traffic import rows
from scalingbook_lib.training.work import work
from tools.compiled import others_step
from tools.compiled.case import Case, Moved, over, summed
from tools.compiled.others import Style


@dataclass(frozen=True, kw_only=True)
class Trained(Case):
    """What both kinds of training programs share."""

    written = True  # whether attention scores are materialized

    @property
    def asked(self) -> tuple[Transformer, training.Plan, int, int]:
        """Model, plan, sequences per step, and tokens per sequence."""
        raise NotImplementedError

    def flops(self) -> float:
        """FLOPs of three passes and of recomputation, with scores if they are materialized."""
        m, plan, batch, T = self.asked
        w = work(m, T, plan.remat, plan.activations, False)
        scores = arithmetic.flops(m, 1, T).get("scores") / T if self.written else 0.0
        per_token = w.useful + w.recomputed.total - scores + w.replicated_flops(plan.tp, passes=3)
        return batch * T * per_token / self.devices


@dataclass(frozen=True, kw_only=True)
class Step(Trained):
    """A step in the style of another project."""

    style: Style

    @property
    def written(self) -> bool:
        return self.style.attn == "plain"

    @property
    def asked(self) -> tuple[Transformer, training.Plan, int, int]:
        return self.style.model(), self.style.plan(), self.style.batch, self.style.T

    @cached_property
    def program(self) -> others_step.Program:
        """The program with its mesh."""
        slices.topology(self.topology)
        return others_step.Program(self.style)

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.program.mesh.shape

    def compiled(self) -> Any:
        state, data = self.program.structs()
        out = (jax.tree.map(lambda a: a.sharding, state), self.program.place())
        return jax.jit(self.program.step, donate_argnums=(0,), out_shardings=out).lower(state, data).compile()

    def moved(self) -> Moved:
        m, plan, batch, T = self.asked
        return _received(
            rows(
                shape(work(m, T, plan.remat, plan.activations, True), plan, batch), unpriced, self.style.scan
            )
        )

    @property
    def memory(self) -> training.TrainingMemory:
        """The predicted memory of a device at its peak."""
        m, plan, batch, T = self.asked
        return training.memory(m, plan, batch=batch, T=T, loop=self.style.scan)

    def held(self) -> float:
        return self.memory.total


@dataclass(frozen=True, kw_only=True)
class Lab(Trained):
    """The laboratory's trainer."""

    trainer: Trainer

    @property
    def asked(self) -> tuple[Transformer, training.Plan, int, int]:
        t = self.trainer
        return t.model, agreement.plan(t), t.batch, t.T

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.trainer.sizes

    def compiled(self) -> aot.Program:
        with jax.default_matmul_precision("float32"):  # otherwise the gathered weights are rounded first
            return self.trainer.program

    def flops(self) -> float:
        """FLOPs as the program is written: a slot for each token at each expert, and the head recomputed.

        Every stage runs in every tick, M + P - 1 of them for M microbatches, and every one has a head.
        """
        m, plan, batch, T = self.asked
        e, M, P = m.experts, self.trainer.microbatches, plan.pp
        m = replace(m, experts=replace(e, k=e.E)) if e else m
        w = work(m, T, plan.remat, plan.activations, False)
        again = w.recomputed.total - arithmetic.flops(m, 1, T).get("scores") / T
        layers = (M + P - 1) / M * (3 * w.forward.layers + again)
        return batch * T * (layers + 4 * P * w.forward.head) / self.devices

    def moved(self) -> Moved:
        return summed(agreement.predicted(self.trainer), self.sizes)

    def held(self) -> float:
        m, plan, batch, T = self.asked
        return training.memory(m, plan, batch=batch, T=T, loop=True).total


def _received(found: Iterable[training.TrainingCollective]) -> Moved:
    moved: Moved = {}
    for row in found:
        if row.what in KINDS and row.n > 1:
            key = over(KINDS[row.what], row.axes)
            moved[key] = moved.get(key, 0.0) + row.received
    return moved

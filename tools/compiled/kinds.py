"""What is lowered, and what predicted, of each kind of program?

A prediction is FLOPs of a device, the bytes that it receives by kind of collective, and the bytes that it
holds. All products that a plain program does are counted: pairs that a mask throws away, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import jax

from scalingbook_lib import inference, training
from scalingbook_lib.collectives import bytes_received
from scalingbook_lib.inference import traffic as serving_traffic
from scalingbook_lib.inference.shape import shape as serving_shape
from scalingbook_lib.lab.compiler import aot, slices
from scalingbook_lib.lab.compiler.predicted import KINDS
from scalingbook_lib.lab.serve import decode
from scalingbook_lib.lab.serve import step as serving_step
from scalingbook_lib.lab.serve.layout import Config
from scalingbook_lib.lab.train import agreement
from scalingbook_lib.lab.train.trainer import Trainer
from scalingbook_lib.machines import Chip, Slice, chips
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.models.arithmetic.layers import pairs
from scalingbook_lib.training.links import unpriced
from scalingbook_lib.training.shape import shape
from scalingbook_lib.training.traffic import rows
from scalingbook_lib.training.work import work
from tests.lab.train import others_step
from tests.lab.train.others import Style
from tools.compiled.serving import Serving

type Moved = dict[str, float]  # bytes that a device receives, by the compiler's name for the collective


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program for a slice."""

    name: str
    topology: str

    @property
    def phase(self) -> str:
        """ "train", "prefill" or "decode"."""
        return self.name.partition(":")[0].partition(" ")[0]

    @property
    def chip(self) -> Chip:
        """What it is compiled for; of a TPU7x a device is a half."""
        known = slices.GENERATIONS[self.topology.partition(":")[0]]
        return chips.HALF_TPU7X if known is chips.TPU7X else known

    @property
    def chips(self) -> int:
        """Those of its slice."""
        return prod(map(int, self.topology.partition(":")[2].split("x")))

    @property
    def devices(self) -> int:
        """As JAX counts them."""
        return self.chips * (2 if self.topology.startswith("tpu7x") else 1)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The axes of its mesh."""
        raise NotImplementedError

    def compiled(self) -> aot.Program | Any:
        """The program, compiled."""
        raise NotImplementedError

    def flops(self) -> float:
        """Of the products of one device."""
        raise NotImplementedError

    def moved(self) -> Moved:
        """What a device receives."""
        raise NotImplementedError

    def held(self) -> float:
        """Bytes of a device."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Trained(Case):
    """What both kinds of training have in common."""

    written = True  # whether scores are

    @property
    def asked(self) -> tuple[Transformer, training.Plan, int, int]:
        """Model, plan, sequences of a step, tokens of one."""
        raise NotImplementedError

    def flops(self) -> float:
        """Three passes and what is done again: scores too, but where they are written out."""
        m, plan, batch, T = self.asked
        w = work(m, T, plan.remat, plan.activations, False)
        scores = arithmetic.flops(m, 1, T).get("scores") / T if self.written else 0.0
        copied = (w.again(plan.tp) - 1) * (3 * w.forward.matmul + w.recomputed.matmul)
        return batch * T * (w.useful + w.recomputed.total - scores + copied) / self.devices


@dataclass(frozen=True, kw_only=True)
class Step(Trained):
    """A step in other people's style."""

    style: Style

    @property
    def written(self) -> bool:
        return self.style.attn == "plain"

    @property
    def asked(self) -> tuple[Transformer, training.Plan, int, int]:
        return self.style.model(), self.style.plan(), self.style.batch, self.style.T

    @cached_property
    def program(self) -> others_step.Program:
        """With its mesh."""
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
    def memory(self) -> training.Memory:
        """What a device holds, at which moment."""
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
        with jax.default_matmul_precision("float32"):  # else what is gathered is rounded first
            return self.trainer.program

    def flops(self) -> float:
        """As its program is written: a place for each token at each expert, and the head done again.

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
        return _summed(agreement.predicted(self.trainer), self.sizes)

    def held(self) -> float:
        m, plan, batch, T = self.asked
        return training.memory(m, plan, batch=batch, T=T, loop=True).total


@dataclass(frozen=True, kw_only=True)
class Served(Case):
    """What both kinds of serving have in common."""

    @property
    def asked(self) -> tuple[Transformer, inference.Layout, int, int, int]:
        """Model, layout, sequences, new tokens of each, tokens of each in the end."""
        raise NotImplementedError

    def flops(self) -> float:
        """Products by their elements on one device, and pairs of queries and keys."""
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
        return inference.memory(m, layout, where, B=B, S=S, step_tokens=B * T).total


@dataclass(frozen=True, kw_only=True)
class Reading(Served):
    """Any structure under tensor ways."""

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
        with slices.quiet():
            return lowered.compile()

    def moved(self) -> Moved:
        m, layout, B, T, _ = self.asked
        where = _slice(self.devices)
        found: Moved = {}
        for row in serving_traffic.rows(serving_shape(m, layout), where, inference.PEAK):
            if row.name != "candidates":  # its logits stay where they are
                found[row.what.hlo] = found.get(row.what.hlo, 0.0) + row.received(B * T, B)
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
        return _summed(serving_step.predicted(self.config, self.T), self.sizes)


def _slice(devices: int) -> Slice:
    """Of so many devices, or of more: bytes do not depend on its shape."""
    return Slice(chips.V5E, agreement.SHAPES.get(devices, (2, 2)))


def _received(found: Iterable[training.Traffic]) -> Moved:
    moved: Moved = {}
    for row in found:
        if row.what in KINDS and row.n > 1:
            moved[KINDS[row.what]] = moved.get(KINDS[row.what], 0.0) + row.received
    return moved


def _summed(sums: Any, sizes: Mapping[str, int]) -> Moved:
    moved: Moved = {}
    for (kind, axes), amount in sums.items():
        n = prod(sizes[axis] for axis in axes)
        moved[kind] = moved.get(kind, 0.0) + bytes_received(kind, amount.nbytes, n)
    return moved

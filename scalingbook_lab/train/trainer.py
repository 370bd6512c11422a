"""Train a small Transformer on a real text, on any mesh of the six axes of `transformer.AXES`.

`Trainer(model, Mesh(X=4, Y=2), batch=16, T=64).train(20)`. A step is written as the program of one device
(`jax.shard_map`), so each collective in the compiled program is one that `transformer` writes. Chapter:
Training.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab import axes
from scalingbook_lab.compiler import aot, sharding
from scalingbook_lab.train import text, transformer
from scalingbook_lib import models, notation
from scalingbook_lib.units import Result

SMALL = models.Transformer(name="small", D=64, L=4, V=text.BYTES, N=16, K=8, H=8, F=192)
SMALL_MOE = replace(SMALL, name="small, with experts", experts=models.Experts(E=8, k=2, F=96))

READ = sharding.spec("A[B_RXZ, T]")  # every device reads whole sequences, and keeps its part of the tokens

type State = dict[str, Any]  # step, weights, m, v: everything that a resumed run needs


@dataclass(frozen=True, slots=True)
class Trained(Result):
    """The losses of the steps starting at `first`, and the state after the last one."""

    first: int
    losses: tuple[float, ...]
    state: State

    def __str__(self) -> str:
        last = self.first + len(self.losses) - 1
        ends = f"{self.losses[0]:.4f} to {self.losses[-1]:.4f}" if self.losses else "none"
        return f"steps {self.first} to {last}: loss {ends} (a random byte costs {np.log(text.BYTES):.2f})"


@dataclass(frozen=True)
class Trainer(Result):
    """A model, a mesh, a batch of sequences of T bytes, and Adam.

    `microbatches` is the number of microbatches in the pipeline. `context` is "ring" or "ulysses". With
    `remat` only the layers' inputs are saved, so weights gathered over X are gathered again in the backward
    pass. `dtype` is that of activations and of gathered weights; weights, gradients and moments are fp32.
    With `base_width` the model is parametrized by muP (Yang et al. 2022): the learning rate of every matrix
    except the embedding is multiplied by base_width/D, and the unembedding starts smaller by the square root
    of that factor, so that the best `rate` of a model of width base_width stays the best one at width D.
    Raises ValueError if the axes do not divide the model or the batch, or if the model has parts that
    `transformer` lacks.
    """

    model: models.Transformer
    mesh: notation.Mesh | Mapping[str, int]
    batch: int = 16
    T: int = 64
    microbatches: int = 1
    context: str = "ring"
    remat: bool = True
    dtype: Any = jnp.float32
    seed: int = 0
    rate: float = 3e-3
    base_width: int | None = None
    topology: str | None = None

    def __post_init__(self) -> None:
        transformer.check_supported(self.model)
        axes.refuse_uneven(self._splits(), self.sizes)

    def _splits(self) -> list[tuple[str, int, str]]:
        """Return each sharded dimension: its name, its size, and the axes that shard it."""
        m, b = self.model, self.batch // self.microbatches
        rows = [("V", m.V, "Y"), ("D", m.D, "X"), ("K", m.K, "Y"), ("F", m.F, "Y"), ("L", m.L, "P")]
        rows += [("E", m.experts.E, "Z"), ("F of an expert", m.experts.F, "Y")] if m.experts else []
        rows += [("K", m.K // self.sizes["Y"], "C")] if self.context == "ulysses" else []
        return [*rows, ("the microbatch", b, "RXZ"), ("T", self.T, "CY")]

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """The size of each of the six axes."""
        return axes.sizes(self.mesh, transformer.AXES)

    @functools.cached_property
    def devices(self) -> jax.sharding.Mesh:
        """The JAX mesh of devices."""
        return aot.mesh_for(self.topology, self.sizes)

    @functools.cached_property
    def specs(self) -> State:
        """The PartitionSpec of every part of the state."""
        split = {name: sharding.spec(transformer.SPLIT[name]) for name in transformer.shapes(self.model)}
        return {"step": PartitionSpec(), "weights": split, "m": split, "v": split}

    @functools.cached_property
    def structs(self) -> State:
        """The shape, dtype and sharding of every part of the state, without allocating it."""
        shapes, specs = transformer.shapes(self.model), self.specs["weights"]
        weights = {name: self._struct(shape, jnp.float32, specs[name]) for name, shape in shapes.items()}
        step = self._struct((), jnp.int32, PartitionSpec())
        return {"step": step, **dict.fromkeys(("weights", "m", "v"), weights)}

    def _struct(self, shape: tuple[int, ...], dtype: Any, spec: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(self.devices, spec))

    def start(self) -> State:
        """Return the state before the first step, with the same numbers on every mesh."""
        return jax.tree.map(
            lambda x, s: jax.make_array_from_callback(s.shape, s.sharding, lambda block: x[block]),
            initial(self.model, self.seed, self.base_width),
            self.structs,
        )

    def data(self, step: int) -> jax.Array:
        """Return the tokens of a step; each process generates the rows of its own devices."""

        def rows(block: Any) -> np.ndarray:
            return text.batch(step, batch=self.batch, T=self.T, rows=block[0])

        return jax.make_array_from_callback(self.tokens.shape, self.tokens.sharding, rows)

    @functools.cached_property
    def program(self) -> aot.Program:
        """One step, compiled: its collectives, its memory on one device, its FLOPs."""
        # the state is donated: its new values replace the old ones, so memory holds it only once
        given = (self.structs, self.tokens)
        return aot.compile(self.spread, *given, mesh=self.sizes, topology=self.topology, donate=(0,))

    @property
    def spread(self) -> Callable:
        """Return one step as a function of global arrays, not compiled yet."""
        reads, makes = (self.specs, READ), (self.specs, PartitionSpec())
        return jax.shard_map(self.local, mesh=self.devices, in_specs=reads, out_specs=makes, check_vma=False)

    @property
    def tokens(self) -> jax.ShapeDtypeStruct:
        """The shape, dtype and sharding of a step's tokens."""
        return self._struct((self.batch, self.T + 1), jnp.int32, READ)

    def step(self, state: State, tokens: jax.Array) -> tuple[State, jax.Array]:
        """Run one step; return the next state and the mean loss. The given state is donated."""
        return self.program.compiled(state, tokens)

    def local(self, state: State, tokens: jax.Array) -> tuple[State, jax.Array]:
        """Run one step as one device does: loss, gradients, their sums over all replicas of a weight, and
        Adam.
        """
        t = self.T // self.sizes["C"]
        # a device of C reads whole sequences, and keeps its part plus one token, the target of its last one
        here = jax.lax.dynamic_slice_in_dim(tokens, jax.lax.axis_index("C") * t, t + 1, 1)
        loss, gradients = jax.value_and_grad(self._loss)(state["weights"], here[:, :-1], here[:, 1:])
        # summed over axes that do not shard the weight; over the others the derivative of all_gather sums
        gradients = {name: self._summed(g, transformer.summed_over(name)) for name, g in gradients.items()}
        return adam(state, gradients, self._rates()), self._summed(loss, tuple(transformer.AXES))

    def _rates(self) -> dict[str, float]:
        """Return the learning rate of every weight."""
        smaller = (self.base_width or self.model.D) / self.model.D
        # the sum over D inputs of a matmul: an Adam update moves all of them the same way, so the change of
        # the output would grow with D. Embedding and norms have no such sum.
        fixed = {name for name in transformer.shapes(self.model) if name == "embed" or "norm" in name}
        return {
            name: self.rate if name in fixed else self.rate * smaller
            for name in transformer.shapes(self.model)
        }

    def _loss(self, w: transformer.Weights, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        how = {"context": self.context, "remat": self.remat, "dtype": self.dtype}
        return transformer.loss(self.model, w, tokens, targets, microbatches=self.microbatches, **how)

    def _summed(self, x: jax.Array, over: tuple[str, ...]) -> jax.Array:
        real = tuple(axis for axis in over if self.sizes[axis] > 1)
        return jax.lax.psum(x, real) if real else x

    def train(self, steps: int, since: State | None = None) -> Trained:
        """Train for `steps` steps, from the start or from a state (which is donated)."""
        state = since or self.start()
        first, losses = int(state["step"]), []
        for step in range(first, first + steps):
            state, loss = self.step(state, self.data(step))
            losses.append(loss)
        return Trained(first, tuple(map(float, losses)), state)

    def __str__(self) -> str:
        model = f"{self.model.name} ({self.model.params:,} parameters)"
        return f"{model} on {axes.format_mesh(self.sizes)}: {self.batch} × {self.T} tokens"


def initial(m: models.Transformer, seed: int, base_width: int | None = None) -> State:
    """Return random weights, each from its own stream; norms are 1 and moments 0.

    With `base_width`, the unembedding starts as muP prescribes, with a variance of base_width/D².
    """
    weights = {}
    # drawn in NumPy, each weight from its own stream: the same numbers on every mesh and in every JAX version
    for stream, (name, shape) in enumerate(transformer.shapes(m).items()):
        weight = np.random.default_rng([seed, stream]).standard_normal(shape, np.float32)
        weights[name] = np.ones_like(weight) if "norm" in name else weight * _fan_in(m, name) ** -0.5
    if base_width:
        weights["unembed"] *= np.float32((base_width / m.D) ** 0.5)
    zeros = {name: np.zeros_like(w) for name, w in weights.items()}
    return {"step": np.zeros((), np.int32), "weights": weights, "m": zeros, "v": zeros}


def _fan_in(m: models.Transformer, name: str) -> int:
    """Return the number of terms in each output element of a matmul."""
    expert = m.experts.F if m.experts else 0
    return {"embed": 1, "o": m.N * m.H, "down": m.F, "expert down": expert}.get(name, m.D)


def adam(state: State, gradients: Mapping[str, jax.Array], rates: Mapping[str, float]) -> State:
    """Run one step of Adam (Kingma and Ba 2014) on the shards of one device, at each weight's own rate."""
    step = state["step"] + 1
    m = {name: 0.9 * state["m"][name] + 0.1 * g for name, g in gradients.items()}
    v = {name: 0.95 * state["v"][name] + 0.05 * g * g for name, g in gradients.items()}
    first_bias, second_bias = 1 - 0.9**step, 1 - 0.95**step  # the moments start at 0
    weights = {
        name: w - rates[name] * (m[name] / first_bias) / (jnp.sqrt(v[name] / second_bias) + 1e-8)
        for name, w in state["weights"].items()
    }
    return {"step": step, "weights": weights, "m": m, "v": v}

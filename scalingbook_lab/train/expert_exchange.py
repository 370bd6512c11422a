"""Expert parallelism: a layer of routed experts between two all-to-alls.

In `RoutedExperts(model, Z=8, B=128)`, each of Z devices has its own sequences and E/Z experts. `capacity` is
the number of tokens that one device can send to one expert; further tokens are dropped by that expert.
Without a capacity, there is room for all tokens of a device. Chapter: Inference.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from scalingbook_lab.collectives import exchange
from scalingbook_lab.compiler import aot
from scalingbook_lab.train import transformer
from scalingbook_lab.train.agreement import SHAPES, Agreement, compare
from scalingbook_lib import inference, models
from scalingbook_lib.hlo.predicted import KINDS, Amount, Key, summed
from scalingbook_lib.inference import traffic
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines import chips, slices
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16, DType, Result

SPLIT = {"router": "R[D, E]", "gate": "G[E_Z, D, F]", "up": "U[E_Z, D, F]", "down": "W[E_Z, F, D]"}
TOKENS = "H[B_Z, D]"


@dataclass(frozen=True)
class RoutedExperts(Result):
    """A layer of routed experts over Z devices, and B tokens that are sharded over them.

    Raises ValueError if the model has no experts, or if Z does not divide the experts and the tokens.
    """

    model: models.Transformer
    Z: int
    B: int
    capacity: int | None = None
    dtype: DType = BF16
    topology: str | None = None

    def __post_init__(self) -> None:
        e = self.model.experts
        if e is None:
            raise ValueError(f"{self.model.name} has no experts; give a model that has")
        for what, size in (("E", e.E), ("B", self.B)):
            if size % self.Z:
                raise ValueError(f"{what} = {size} is not divisible by Z = {self.Z}; change one of them")

    @property
    def room(self) -> int:
        """The number of tokens from one device that one expert accepts."""
        return self.capacity or self.B // self.Z

    @property
    def padding(self) -> float:
        """Slots sent divided by slots needed: E · room over the k experts of each token."""
        assert self.model.experts
        return self.model.experts.E * self.room / (self.model.experts.k * self.B / self.Z)

    def local(self, h: jax.Array, *weights: jax.Array) -> jax.Array:
        """h[B_Z, D] → [B_Z, D] as one device computes it."""
        assert self.model.experts
        return routed(dict(zip(SPLIT, weights, strict=True)), h, self.model.experts.k, self.room)

    @functools.cached_property
    def program(self) -> aot.Program:
        """The compiled layer."""
        m, e = self.model, self.model.experts
        assert e
        return aot.compile(
            self.local,
            TOKENS,
            *SPLIT.values(),
            out=TOKENS,
            local=True,
            mesh=Mesh(Z=self.Z),
            topology=self.topology,
            dtype=self.dtype,
            B=self.B,
            D=m.D,
            E=e.E,
            F=e.F,
        )

    @functools.cached_property
    def agreement(self) -> Agreement:
        """Compare the compiled all-to-alls of one layer with those that `inference` predicts, padding
        included.
        """
        layout = inference.Layout(tp=self.Z, ep=self.Z, attention_dp=self.Z, activations=self.dtype)
        on = slices.Slice(chips.V5E, SHAPES[self.Z])
        rows = traffic.rows(shape(self.model, layout), on, inference.PEAK)
        exchanges = [t.nbytes(self.B, 0) for t in rows if t.what == traffic.EXCHANGE]
        key = Key(KINDS[traffic.EXCHANGE], "Z")
        wanted = summed((key, Amount(1, nbytes * self.padding)) for nbytes in exchanges)
        return compare(wanted, self.program.collectives)

    def __str__(self) -> str:
        room = f"room for {self.room} of a device at an expert"
        return f"{self.model.name}: {self.B} tokens over Z{self.Z}, {room}"


def routed(w: Mapping[str, Any], h: jax.Array, k: int, room: int) -> jax.Array:
    """Send each token of h[b, D] through its k experts on the devices of Z, up to the capacity."""
    E = w["router"].shape[1]
    share, chosen = transformer.chosen_experts(h @ w["router"], k)
    wants = jax.nn.one_hot(chosen, E, dtype=h.dtype)  # [b, k, E]
    gates, wanted = jnp.einsum("bke,bk->be", wants, share.astype(h.dtype)), wants.sum(1)
    # the n-th token of an expert takes its n-th slot; beyond `room` the one-hot row is all zeros
    place = (jnp.cumsum(wanted.astype(jnp.int32), 0) - 1)[..., None] == jnp.arange(room)
    sent = jnp.where(place, wanted[..., None], 0)  # [b, E, room]: 1 where a token has its slot
    there = exchange(jnp.einsum("bec,bd->ecd", sent, h), "Z", 0, 1)  # [E_Z, Z · room, D]
    done = jax.vmap(transformer.mlp)({name: w[name] for name in ("gate", "up", "down")}, there)
    return jnp.einsum("ecd,bec,be->bd", exchange(done, "Z", 1, 0), sent, gates)

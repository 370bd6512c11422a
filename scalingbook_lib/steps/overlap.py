"""The all-to-all time of experts that compute hides, and the compute time that the cores used for it cost.

`Stages` are the four parts of an MoE layer for one microbatch. `two_microbatches` alternates two of them: one
computes while the other's tokens travel. `waves` overlaps inside a layer, one group of experts at a time, in
one kernel. The kernels that move tokens may occupy cores, and compute on the remaining cores is slower.
Chapters: GPUs: the network; Training; Comparing accelerators.

>>> layer = Stages(attention_s=300e-6, dispatch_s=150e-6, experts_s=250e-6, combine_s=250e-6)
>>> print(two_microbatches(layer, taken=20, cores=132))
1.3 ms for two microbatches instead of 1.9 ms, 1.47 times as fast: 1.1 ms of compute, 196 µs because \
cores move tokens, nothing exposed
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.steps.limits.expert import exchange
from scalingbook_lib.units import BF16, FP8, DType, Result, require_min, si

ATTENTION, DISPATCH, EXPERTS, COMBINE = "attention", "dispatch", "experts", "combine"
_ATTENDING = ("attention projections", "latent up-projection")
_PLAYED = 64  # layers simulated, enough for a steady state


@dataclass(frozen=True, kw_only=True, slots=True)
class Stages(Result):
    """One layer of one microbatch on one chip, with all cores computing: two compute parts, two transfers."""

    attention_s: float  # and all other work that every token needs
    dispatch_s: float
    experts_s: float
    combine_s: float

    def __post_init__(self) -> None:
        require_min(0, dispatch_s=self.dispatch_s, combine_s=self.combine_s)
        require_min(0, attention_s=self.attention_s, experts_s=self.experts_s)

    @property
    def products_s(self) -> float:
        """The compute time in seconds."""
        return self.attention_s + self.experts_s

    @property
    def exchange_s(self) -> float:
        """The dispatch and combine time in seconds."""
        return self.dispatch_s + self.combine_s

    def slowed(self, taken: float, cores: float) -> "Stages":
        """The same layer with `taken` of its `cores` permanently used for dispatch and combine.

        Raises a ValueError if no core is left.
        """
        require_min(0, taken=taken)
        if taken >= cores:
            raise ValueError(f"{taken:g} of {cores:g} cores move tokens and none computes; take fewer")
        slower = cores / (cores - taken)
        return replace(self, attention_s=self.attention_s * slower, experts_s=self.experts_s * slower)

    def __str__(self) -> str:
        return f"{si(self.products_s, 's')} of compute, {si(self.exchange_s, 's')} of dispatch and combine"


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlapped(Result):
    """A layer in the steady state: the time with overlap, its parts, and the time without overlap."""

    what: str
    total_s: float
    products_s: float  # with every core
    cores_s: float  # the slowdown from cores that move tokens
    alone_s: float  # one part after the other, with every core

    @property
    def exposed_s(self) -> float:
        """The exposed communication in seconds."""
        left = self.total_s - self.products_s - self.cores_s
        return left if left > 1e-9 * self.total_s else 0.0  # ignore rounding errors

    @property
    def gain(self) -> float:
        """The speedup over one part after the other; below 1 if the cores cost more than overlap saves."""
        return self.alone_s / self.total_s if self.total_s else 1.0

    def __str__(self) -> str:
        left = f"{si(self.exposed_s, 's')} of exposed communication" if self.exposed_s else "nothing exposed"
        moving = f"{si(self.cores_s, 's')} because cores move tokens, " if self.cores_s else ""
        return (
            f"{si(self.total_s, 's')} for {self.what} instead of {si(self.alone_s, 's')}, "
            f"{self.gain:.3g} times as fast: {si(self.products_s, 's')} of compute, {moving}{left}"
        )


class MicrobatchTurn(NamedTuple):
    """One part of one of the two microbatches."""

    microbatch: int
    part: str
    start: float
    end: float


def two_microbatches(layer: Stages, *, taken: float = 0, cores: float = 1) -> Overlapped:
    """The time of two microbatches that alternate through identical layers; `layer` is one microbatch.

    It is never less than 2 max(attention + experts, dispatch + combine) with the slowed compute. The rest
    depends on the order: cores and network each do attention, experts (dispatch, combine) of one microbatch,
    then of the other. The times are simulated. Sources: DeepSeek-V3 (arXiv 2412.19437), sections 3.2.2 and
    3.4.
    """
    slowed = layer.slowed(taken, cores)
    ends = [turn.end for turn in turns(slowed, 2 * _PLAYED) if turn.part == COMBINE]
    return Overlapped(
        what="two microbatches",
        total_s=(ends[-1] - ends[len(ends) // 2 - 1]) / _PLAYED,
        products_s=2 * layer.products_s,
        cores_s=2 * (slowed.products_s - layer.products_s),
        alone_s=2 * (layer.products_s + layer.exchange_s),
    )


def turns(layer: Stages, layers: int) -> Iterator[MicrobatchTurn]:
    """The tasks of cores and network, with their times, for two microbatches through that many layers."""
    cores, network, ready = 0.0, 0.0, [0.0, 0.0]
    parts = (
        (ATTENTION, layer.attention_s, DISPATCH, layer.dispatch_s),
        (EXPERTS, layer.experts_s, COMBINE, layer.combine_s),
    )
    for product, math_s, way, way_s in parts * layers:
        for one in range(2):
            begin, cores = max(cores, ready[one]), max(cores, ready[one]) + math_s
            yield MicrobatchTurn(one, product, begin, cores)
            begin, network = max(network, cores), max(network, cores) + way_s
            ready[one] = network
            yield MicrobatchTurn(one, way, begin, network)


def waves(layer: Stages, n: int, *, taken: float = 0, cores: float = 1) -> Overlapped:
    """The experts' part in n waves: while one wave is multiplied, the next arrives and the previous returns.

    It takes (d + x + m)/n to fill and to drain and (n - 1)/n max(d + m, x) in between, so it is at most twice
    as fast. All waves have the same size. Source: DeepSeek-V4's fused kernel, which its report calls MegaMoE.
    """
    require_min(1, n=n)
    slowed = layer.slowed(taken, cores)
    alone = layer.experts_s + layer.exchange_s
    between = max(slowed.exchange_s, slowed.experts_s)
    return Overlapped(
        what=f"{n} waves",
        total_s=(slowed.experts_s + slowed.exchange_s + (n - 1) * between) / n,
        products_s=layer.experts_s,
        cores_s=slowed.experts_s - layer.experts_s,
        alone_s=alone,
    )


def stages(
    machine: Machine,
    model: Transformer,
    *,
    tokens: int,
    T: int = 4096,
    dispatch: DType = FP8,
    compute: DType = BF16,
    most_domains: int | None = None,
) -> Stages:
    """A layer's forward pass at peak rates, with experts over the whole machine and `tokens` on each chip.

    Sequences have T tokens; combine is in bf16. A backward pass takes twice the compute and its own dispatch
    and combine. Raises a ValueError if the model has no experts.
    """
    x = model.experts
    if x is None:
        raise ValueError(f"{model.name} has no experts; choose a mixture-of-experts model")
    there, back = (
        exchange(
            machine, machine.chips, tokens=tokens, D=model.D, k=x.k, E=x.E, most_domains=most_domains, dtype=t
        ).total_s
        for t in (dispatch, BF16)
    )
    done, share = arithmetic.flops(model, 1, T), tokens / T / machine.chip.flops_per_s(compute)
    attends = (done.attention + sum(map(done.get, _ATTENDING))) / model.L
    shared = (done.get("shared experts") + done.get("router")) / model.moe_layers
    routed = done.get("experts") / model.moe_layers
    return Stages(
        attention_s=(attends + shared) * share, dispatch_s=there, experts_s=routed * share, combine_s=back
    )

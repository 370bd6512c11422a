"""The width of an expert above which its matmuls take longer than token dispatch and combine.

Every chip holds E/Z of the experts, and every token is dispatched to k of them and combined. Routing is
assumed to be uniform. A transfer can be saved if two of a token's experts are behind the same wire: if E is
given, with the probability that k different experts share it, otherwise as if there were many more experts
than k. Chapter: GPUs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.machines import Level, Machine
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.steps.limits.limit import LevelLimit, Limit, inner, singled
from scalingbook_lib.units import BF16, DType, Result, count, require_min, si


@dataclass(frozen=True, slots=True)
class ExpertExchange(Result):
    """Token dispatch to the experts (or combine): the seconds and the token transfers at every level."""

    what: str
    seconds: tuple[tuple[str, float], ...]  # by level, from the inside out
    copies: tuple[tuple[str, float], ...]  # transfers of one token that leave its chip over that level

    @property
    def total_s(self) -> float:
        """The time in seconds of the slowest level; all levels work at once."""
        return max((s for _, s in self.seconds), default=0.0)

    @property
    def bound(self) -> str:
        """The name of the slowest level; '' if nothing moves."""
        return max(self.seconds, key=lambda one: one[1])[0] if self.seconds else ""

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.what}: every expert is on the same chip"
        sent = " and ".join(f"{n:.3g} over {level}" for level, n in self.copies)
        return f"{self.what}: {si(self.total_s, 's')}, bottleneck {self.bound}; copies per token: {sent}"


def exchange(
    machine: Machine,
    Z: int,
    *,
    tokens: float,
    D: float,
    k: int,
    E: int | None = None,
    once: bool = True,
    most_domains: int | None = None,
    dtype: DType = BF16,
) -> ExpertExchange:
    """The dispatch of `tokens` tokens of width D per chip to k experts on the Z innermost chips, or combine.

    It is an all-to-all of k transfers per token. With `once`, a token crosses into a domain once and goes to
    a chip once, even if several of its experts are there: of T targets it reaches T (1 - (1 - 1/T)^k), not k,
    and one sum returns. `most_domains` limits each token's experts to that many domains (DeepSeek: 4).
    """
    require_min(1, Z=Z)
    said = f"{count(tokens)} tokens of each of {machine.chip.counted(Z)} to {k} experts"
    nbytes = dtype.bytes * tokens * D  # of one chip's tokens, counted once
    return exchange_over(inner(machine, Z), nbytes, k, E=E, once=once, most_domains=most_domains, said=said)


def exchange_over(
    networks: tuple[collectives.Network, ...],
    nbytes: float,
    k: int,
    *,
    E: int | None = None,
    once: bool = True,
    most_domains: int | None = None,
    said: str = "an exchange",
) -> ExpertExchange:
    """The `exchange` over these levels, for `nbytes` of tokens on each chip, counted once.

    Raises a ValueError if E experts cannot be sharded over the chips with k per token.
    """
    require_min(1, k=k, most_domains=most_domains or 1)
    require_min(0, nbytes=nbytes)
    Z = collectives.chips(*networks)
    if E is not None and max(k, Z) > E:
        raise ValueError(f"{E} experts cannot be sharded over {Z:,} chips with {k} per token: lower Z or k")
    seconds, copies = [], []
    for name, alone, targets, each, beyond in _levels(networks, Z, most_domains):
        # outgoing transfers: one for each target with any of the k experts
        sent = targets * reached(targets, k, E and E * each / Z) if once else k
        # as if all k transfers left, scaled by the share that does
        took = collectives.all_to_all(nbytes * k * Z, *alone).bandwidth_s
        seconds.append((name, sent / k * took))
        copies.append((name, sent * beyond))
    return ExpertExchange(said, tuple(seconds), tuple(copies))


def expert_parallel(
    machine: Machine,
    Z: int,
    *,
    k: int = 1,
    E: int | None = None,
    shared: int = 0,
    gated: bool = False,
    once: bool = False,
    most_domains: int | None = None,
    dtype: DType = BF16,
    dispatch: DType = BF16,
    combine: DType = BF16,
) -> Limit:
    """The width F > C · t / (2 · matrices · (k + shared)), with t the seconds of both directions per element.

    In a domain with k transfers F > (Z - 1)/Z · C/W, for any Z and k. Over domains of g chips, with one
    transfer to each: F > C/W_n · g (k_n - 1) (1 - (1 - 1/k_n)^k) / k with k_n = Z/g, which approaches g C/W_n
    for many domains. `gated`: a third matrix, and two thirds of that F. `shared` experts process every token
    on its own chip. Source: derived from `collectives`; the scaling book has min(k/k_n, 1) instead of 1 - (1
    - 1/k_n)^k.
    """
    require_min(0, shared=shared)
    both = DType(f"{dispatch} and {combine}", dispatch.bytes + combine.bytes)
    found = exchange(machine, Z, tokens=1, D=1, k=k, E=E, once=once, most_domains=most_domains, dtype=both)
    # 2 · matrices · (k + shared) · D · F FLOPs per token, solved for F; D cancels
    scale = machine.chip.flops_per_s(dtype) / (2 * (3 if gated else 2) * (k + shared))
    terms = tuple(LevelLimit(level, scale * s) for level, s in found.seconds)
    return Limit(f"expert parallelism over {machine.chip.counted(Z)}", "F", scale * found.total_s, terms)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoutedLayer(Result):
    """The forward pass of one MoE layer: its matmuls, and two ways to deliver tokens to the experts."""

    products_s: float
    exchange_s: float  # dispatch of every token to its experts, and combine
    gathered_s: float  # every token gathered on every chip, and the sums scattered: no routing tables

    def __str__(self) -> str:
        return (
            f"matmuls {si(self.products_s, 's')}; dispatch and combine {si(self.exchange_s, 's')}, "
            f"or gathering every token {si(self.gathered_s, 's')}"
        )


def routed_layer(
    machine: Machine, model: Transformer, tokens: int, *, once: bool = False, dispatch: DType = BF16
) -> RoutedLayer:
    """The forward pass of an MoE layer sharded over all chips, with `tokens` tokens on each.

    Dispatch uses the data type `dispatch`, and combine bf16. Raises a ValueError if the model has no experts.
    """
    x, Z, axes = model.experts, machine.chips, machine.mesh(Z=machine.chips).axes("Z")
    if x is None:
        raise ValueError(f"{model.name} has no experts")
    there, back = (
        exchange(machine, Z, tokens=tokens, D=model.D, k=x.k, E=x.E, once=once, dtype=kind)
        for kind in (dispatch, BF16)
    )
    # [tokens of all chips, D] on every chip, then sums of the same size
    gathered = collectives.all_gather(dispatch.bytes * Z * tokens * model.D, *axes)
    summed = collectives.reduce_scatter(BF16.bytes * Z * tokens * model.D, *axes)
    flops = arithmetic.flops(model, 1, tokens).get("experts") / model.moe_layers
    return RoutedLayer(
        products_s=flops / machine.chip.flops_per_s(BF16),
        exchange_s=there.total_s + back.total_s,
        gathered_s=gathered.bandwidth_s + summed.bandwidth_s,
    )


def reached(targets: int, k: int, each: float | None = None) -> float:
    """The probability that one of `targets` has any of a token's k experts, with `each` experts per target.

    It is 1 - (1 - 1/T)^k if there are many experts; otherwise 1 - C(E - each, k) / C(E, k), with E = T ·
    each.
    """
    if each is None:
        return collectives.reach_probability(targets, k)
    E = targets * each
    # all k are drawn, without replacement, from the experts elsewhere
    return 1 - math.prod(max(E - each - i, 0) / (E - i) for i in range(min(k, math.floor(E))))


def _levels(
    networks: tuple[collectives.Network, ...], Z: int, most_domains: int | None
) -> Iterator[tuple[str, tuple[collectives.Network, ...], int, int, float]]:
    """Every level alone, its targets that receive one transfer each, their chips, and the share beyond it."""
    first, below = (networks[0] if networks else None), 1
    domain = first.size if isinstance(first, Level) and first.port != "network" else 1  # chips below its port
    for (name, alone), network in zip(singled(networks), networks, strict=False):
        if isinstance(network, Level) and network.port == "network":
            yield name, alone, min(Z // domain, most_domains or Z), domain, 1 - below / Z
        else:
            chips = min(Z, domain * (most_domains or Z))
            yield name, alone, chips, 1, 1 - 1 / (domain if isinstance(network, Level) else Z)
        below *= network.size

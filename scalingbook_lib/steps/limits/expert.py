"""How wide must an expert be, so that bringing the tokens to it and back takes no longer than its products?

Every chip holds E/Z of the experts, and every token goes to k of them: out (dispatch) and back (combine).
Routing is taken to be uniform. A copy can be saved where two experts sit behind the same wire: with E given,
by the chance that k different experts do, else as if there were many more experts than k. Chapter: GPUs.
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
    """One way of the tokens to their experts (or back): what every level carries, and for how long."""

    what: str
    seconds: tuple[tuple[str, float], ...]  # by level, from the inside out
    copies: tuple[tuple[str, float], ...]  # of one token that leave its chip over that level

    @property
    def total_s(self) -> float:
        """All levels work at once: the slowest."""
        return max((s for _, s in self.seconds), default=0.0)

    @property
    def bound(self) -> str:
        """The level that takes longest; '' where nothing moves."""
        return max(self.seconds, key=lambda one: one[1])[0] if self.seconds else ""

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.what}: every expert is at hand"
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
    """Every chip sends its `tokens` tokens of width D to k experts over the Z innermost chips, or back.

    An all-to-all of k copies of each token. With `once`, a token crosses into a domain once and goes to a
    chip once, however many of its experts are there: of T targets it reaches T (1 - (1 - 1/T)^k), not k,
    and comes back as one sum. `most_domains`: each token's experts are in that many domains (DeepSeek: 4).
    """
    require_min(1, Z=Z)
    said = f"{count(tokens)} tokens of each of {Z:,} {machine.chip.name} to {k} experts"
    nbytes = dtype.bytes * tokens * D  # of one chip's tokens, before they are copied
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
    """`exchange` over these levels, each chip with `nbytes` of tokens before they are copied."""
    require_min(1, k=k, most_domains=most_domains or 1)
    require_min(0, nbytes=nbytes)
    Z = collectives.chips(*networks)
    if E is not None and max(k, Z) > E:
        raise ValueError(f"{E} experts cannot be shared by {Z:,} chips with {k} for each token: lower Z or k")
    seconds, copies = [], []
    for name, alone, targets, each, beyond in _levels(networks, Z, most_domains):
        # copies that leave: one for each place that has any of the k experts
        sent = targets * reached(targets, k, E and E * each / Z) if once else k
        # as if all k copies left; then the part that does
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
    """The width: F > C · t / (2 · matrices · (k + shared)), t the seconds of both ways for one element.

    In a domain with k copies F > (Z - 1)/Z · C/W, whatever Z and k. Over domains of g chips, one copy to
    each: F > C/W_n · g (k_n - 1) (1 - (1 - 1/k_n)^k) / k with k_n = Z/g, which nears g C/W_n for many.
    `gated`: a third matrix, and two thirds of that F. `shared` experts work on every token where it is.
    Source: derived from `collectives`; the scaling book has min(k/k_n, 1) in place of 1 - (1 - 1/k_n)^k.
    """
    require_min(0, shared=shared)
    both = DType(f"{dispatch} and {combine}", dispatch.bytes + combine.bytes)
    found = exchange(machine, Z, tokens=1, D=1, k=k, E=E, once=once, most_domains=most_domains, dtype=both)
    # 2 · matrices · (k + shared) · D · F FLOPs per token, solved for F; D cancels
    scale = machine.chip.flops_per_s(dtype) / (2 * (3 if gated else 2) * (k + shared))
    terms = tuple(LevelLimit(level, scale * s) for level, s in found.seconds)
    return Limit(f"expert parallelism over {Z:,} {machine.chip.name}", "F", scale * found.total_s, terms)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoutedLayer(Result):
    """The forward pass of one layer of experts: its products, and two ways to bring it its tokens."""

    products_s: float
    exchange_s: float  # every token to its experts and back
    gathered_s: float  # every token to every chip, and the sums scattered: no routing tables

    def __str__(self) -> str:
        ways = f"{si(self.exchange_s, 's')} of exchange, or {si(self.gathered_s, 's')} to gather every token"
        return f"{si(self.products_s, 's')} of products; {ways}"


def routed_layer(
    machine: Machine, model: Transformer, tokens: int, *, once: bool = False, dispatch: DType = BF16
) -> RoutedLayer:
    """A layer of experts that all chips share, with `tokens` tokens on each: both ways out in `dispatch`."""
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
    """The chance that one of `targets` places has any of a token's k experts, with `each` experts in a place.

    1 - (1 - 1/T)^k where the experts are many; else 1 - C(E - each, k) / C(E, k), of E = T · each.
    """
    if each is None:
        return collectives.reach_probability(targets, k)
    E = targets * each
    # all k drawn, without return, from the experts that lie elsewhere
    return 1 - math.prod(max(E - each - i, 0) / (E - i) for i in range(min(k, math.floor(E))))


def _levels(
    networks: tuple[collectives.Network, ...], Z: int, most_domains: int | None
) -> Iterator[tuple[str, tuple[collectives.Network, ...], int, int, float]]:
    """Every level alone, the targets to which it brings one copy each, their chips, the share beyond it."""
    first, below = (networks[0] if networks else None), 1
    domain = first.size if isinstance(first, Level) and first.port != "network" else 1  # below its port
    for (name, alone), network in zip(singled(networks), networks, strict=False):
        if isinstance(network, Level) and network.port == "network":
            yield name, alone, min(Z // domain, most_domains or Z), domain, 1 - below / Z
        else:
            chips = min(Z, domain * (most_domains or Z))
            yield name, alone, chips, 1, 1 - 1 / (domain if isinstance(network, Level) else Z)
        below *= network.size

"""How many tokens must each chip have, so that sharing the weights (FSDP) or gradients (DP) costs no time?

In the forward pass FSDP gathers every weight, w bytes for 2 FLOPs a token; backward both are doubled, and
plain data parallelism, which all-reduces gradients there, has the same ratio. Chapter: GPUs.
"""

from dataclasses import replace

from scalingbook_lib import collectives
from scalingbook_lib.machines import Machine
from scalingbook_lib.steps.limits.limit import Limit, at_least, limit, outer
from scalingbook_lib.units import BF16, DType


def data_parallel(
    machine: Machine,
    *,
    model_parallel: int = 1,
    sparsity: float = 1.0,
    in_switch: bool = False,
    overlap: bool = True,
    dtype: DType = BF16,
    moved: DType = BF16,
) -> Limit:
    """Tokens per chip: B/N > E/k · w/2 · C · t/m, with t the seconds that one byte takes to gather.

    `model_parallel`: the chips m, the innermost ones, that split the weights between them (TP · EP · PP);
    data parallelism runs over the others. `sparsity`: E/k, experts in memory over experts that a token
    visits. `in_switch`: gradients alone are moved, and switches that can sum do. `moved`: w bytes an element.
    With pipeline stages take ZeRO-1: weights gathered anew for each microbatch would cost that many times t.

    For a cluster of domains of g chips with W each, on a network with W_n a domain, m_i = min(m, g) and
    m_n = max(1, m/g): t/m = max[(1 - m_i/g) / (W m_i), (1 - 1/k') / (W_n m_n)], k' domains over m_n.
    Source: derived from `collectives`, which a message simulator confirms; the scaling book's C/W_n is the
    limit of the second term where m = g.
    """
    at_least(1, model_parallel=model_parallel, sparsity=sparsity)
    per_byte = sparsity * moved.bytes / 2 * machine.chip.flops_per_s(dtype) / model_parallel

    def cost(nbytes: float, *networks: collectives.Network) -> collectives.Transfer:
        if in_switch:
            both = collectives.all_reduce(nbytes, *networks, in_switch=True, overlap=overlap)
            # it stands against the backward pass, which has twice the arithmetic
            return replace(both, bandwidth_s=both.bandwidth_s / 2)
        return collectives.all_gather(nbytes, *networks, overlap=overlap)

    groups = f", {model_parallel:,} chips to a copy" if model_parallel > 1 else ""
    what = f"data parallelism over the {machine.name}{groups}"
    return limit(what, "tokens per chip", per_byte, cost, outer(machine, model_parallel))

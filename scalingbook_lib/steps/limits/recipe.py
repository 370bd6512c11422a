"""The limits of compute-bound training in low precision, with one data type per matmul and per transfer.

A matmul in a faster type raises C and with it every limit; a transfer in fewer bytes lowers its own limit. A
recipe therefore names both. Chapter: Low precision.

>>> from scalingbook_lib.machines import Cluster, chips
>>> from scalingbook_lib.units import FP8
>>> nodes = Cluster.of(chips.H100, 4096)
>>> [round(Recipe(product=p).data_parallel(nodes, 8).least) for p in (BF16, FP8)]
[2468, 4938]
"""

from dataclasses import dataclass, fields

from scalingbook_lib import rules
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.steps.limits.expert import expert_parallel
from scalingbook_lib.steps.limits.limit import Limit
from scalingbook_lib.steps.limits.parallel import data_parallel, tensor_parallel
from scalingbook_lib.units import BF16, DType, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Result):
    """The data types of the matmul, of weights in HBM, and of communication.

    `gather`: weights and activations that are all-gathered; `sums`: gradients and partial sums that are
    reduced; `dispatch` and `combine`: tokens sent to their experts, and back.
    """

    product: DType = BF16
    weights: DType = BF16
    gather: DType = BF16
    sums: DType = BF16
    dispatch: DType = BF16
    combine: DType = BF16

    def batch(self, chip: Chip) -> float:
        """The critical batch B* = w C / (2 W_hbm) in tokens, with C of the matmul's type, for wide layers."""
        return rules.critical_batch(chip, weights=self.weights, compute=self.product).tokens

    def data_parallel(self, machine: Machine, model_parallel: int = 1) -> Limit:
        """The FSDP limit in tokens per chip: b > max(w/2, (w + g)/4) C/W.

        The forward pass has a gather, the backward pass a gather and a reduction.
        """
        w, g = self.gather.bytes, self.sums.bytes
        # forward w bytes for 2 FLOPs, backward w + g for 4: the pass with the longer communication decides
        moved = DType(f"{self.gather} and {self.sums}", max(w, (w + g) / 2))
        return data_parallel(machine, model_parallel=model_parallel, dtype=self.product, moved=moved)

    def tensor_parallel(self, machine: Machine, Y: int, *, gated: bool = False) -> Limit:
        """The width that tensor parallelism of degree Y needs.

        Inputs are all-gathered, and outputs are reduce-scattered.
        """
        # both have the same number of elements, one after the other, so their mean counts
        moved = DType(f"{self.gather} and {self.sums}", (self.gather.bytes + self.sums.bytes) / 2)
        return tensor_parallel(machine, Y, gated=gated, dtype=self.product, moved=moved)

    def expert_parallel(self, machine: Machine, Z: int, k: int, *, gated: bool = False) -> Limit:
        """The width of an expert that expert parallelism over Z chips needs."""
        return expert_parallel(
            machine, Z, k=k, gated=gated, dtype=self.product, dispatch=self.dispatch, combine=self.combine
        )

    def __str__(self) -> str:
        return ", ".join(f"{f.name} {getattr(self, f.name)}" for f in fields(self))

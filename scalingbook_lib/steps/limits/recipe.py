"""Where do the boundaries go when products and transfers are done in narrower types? One dial for each.

A product in a faster type raises C, and each boundary with it; a transfer in fewer bytes lowers its own. So
a recipe names both: the limits of `roofline` and of this room follow. Chapter: Low precision and optimizers.

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
    """The type of the product, of weights in HBM, and of what travels.

    `gather`: weights and activations that are copied; `sums`: gradients and partial results that are added;
    `dispatch` and `combine`: tokens on the way to their experts, and back.
    """

    product: DType = BF16
    weights: DType = BF16
    gather: DType = BF16
    sums: DType = BF16
    dispatch: DType = BF16
    combine: DType = BF16

    def batch(self, chip: Chip) -> float:
        """B* = w C / (2 W_hbm), C of the product's type: a rule for wide layers."""
        return rules.critical_batch(chip, weights=self.weights, compute=self.product).tokens

    def data_parallel(self, machine: Machine, model_parallel: int = 1) -> Limit:
        """FSDP, tokens a chip: b > max(w/2, (w + g)/4) C/W, forward a gather, backward a gather and a sum."""
        w, g = self.gather.bytes, self.sums.bytes
        # forward w bytes for 2 FLOPs, backward w + g for 4: the pass that waits longer decides
        moved = DType(f"{self.gather} and {self.sums}", max(w, (w + g) / 2))
        return data_parallel(machine, model_parallel=model_parallel, dtype=self.product, moved=moved)

    def tensor_parallel(self, machine: Machine, Y: int, *, gated: bool = False) -> Limit:
        """The width that Y ways need: inputs are gathered, outputs summed and scattered."""
        # both are as many elements, one after the other: their mean counts
        moved = DType(f"{self.gather} and {self.sums}", (self.gather.bytes + self.sums.bytes) / 2)
        return tensor_parallel(machine, Y, gated=gated, dtype=self.product, moved=moved)

    def expert_parallel(self, machine: Machine, Z: int, k: int, *, gated: bool = False) -> Limit:
        """The width of an expert over Z chips."""
        return expert_parallel(
            machine, Z, k=k, gated=gated, dtype=self.product, dispatch=self.dispatch, combine=self.combine
        )

    def __str__(self) -> str:
        return ", ".join(f"{f.name} {getattr(self, f.name)}" for f in fields(self))

"""The limits of data, tensor, context and expert parallelism, and of FSDP with tensor parallelism.

A layer is W_in[D, F] and W_out[F, D], a bf16 element takes 2 bytes, and every torus axis is a long ring, so
that (1 - 1/n) is 1. r = C/W_ici (`network_ridge`). B is tokens of the global batch, n chips, X the FSDP
degree, Y = n/X the tensor-parallel degree, on n_X and n_Y axes. `steps.limits` has the limits of a given
machine without these approximations, `steps.pipelines.bubble` the idle share of each pipeline schedule.
Chapter: Training.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Unpack

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules.ratios import Over, network_ridge
from scalingbook_lib.units import BF16, DType, Result, count


def data_parallel_tokens(
    chip: Chip, *, gradients: DType = BF16, dtype: DType = BF16, **over: Unpack[Over]
) -> float:
    """The tokens per chip B/X = r / n_X above which DP and FSDP are compute-bound; 1.5 times that for fp32.

    FSDP's backward pass gathers 4DF bytes and scatters 2 · g · DF bytes for 8BDF / X FLOPs; plain DP
    all-reduces the gradients during the same FLOPs. Derived in Introduction and in Training ("Fully
    sharded").
    """
    # (4 + 2 g) D F bytes / (n_X W) = 8 B D F / (X C), solved for B/X
    return network_ridge(chip, dtype, **over) * (4 + 2 * gradients.bytes) / 8


def tensor_parallel_degree(
    F: float, chip: Chip, *, activations: DType = BF16, dtype: DType = BF16, **over: Unpack[Over]
) -> float:
    """The degree Y = n_Y F / r up to which tensor parallelism is compute-bound, for any batch.

    With a bytes per activation it is 2 n_Y F / (a r). Hops are not counted. Derived in Training ("Tensor
    parallelism").
    """
    # 2 a B D / (n_Y W) = 4 B D F / (Y C), solved for Y
    return 2 * F / (activations.bytes * network_ridge(chip, dtype, **over))


def cross_pod_tokens(chip: Chip, pods: int, *, gradients: DType = BF16) -> float:
    """The tokens per pod B/q = (q - 1)/q · C / W_dcn · g/2 above which DP between q pods is compute-bound.

    Gradients have g bytes, and each chip sends its share of a pod's gradients. Derived in Training ("Between
    pods"). Raises a ValueError if the chip has no documented data-center network.
    """
    if not chip.dcn_bytes_per_s:
        raise ValueError(f"{chip.name} has no documented data-center network; choose another chip")
    # an all-reduce of 2 (q - 1)/q g 2DF/c bytes, against 8 B D F / (q c) FLOPs
    return (pods - 1) / pods * network_ridge(chip, bytes_per_s=chip.dcn_bytes_per_s) * gradients.bytes / 2


def context_parallel_tokens(G: float, chip: Chip, *, causal: bool = True, **over: Unpack[Over]) -> float:
    """The tokens per chip t = r / (n_ax G) above which ring attention is compute-bound; 2 t if causal.

    G = N/K query heads share one KV head: 4 T K H bytes pass a chip for 4 t T N H FLOPs, half of them if
    masked pairs are skipped. Derived in Training ("Splitting the sequence").
    """
    # 4 T K H / (n_ax W) = 4 t T N H / C, without half of the pairs if causal
    return network_ridge(chip, **over) / G * (2 if causal else 1)


def expert_parallel_width(
    chip: Chip,
    longest: int | None = None,
    *,
    gated: bool = True,
    dispatch: DType = BF16,
    combine: DType = BF16,
    dtype: DType = BF16,
    **over: Unpack[Over],
) -> float:
    """The width F = r · n_long / 6 above which experts on whole torus axes are compute-bound (ungated, 4).

    Dispatch and combine move (d + c) b k D bytes, n_long / 4 of them over each axis's W_ici, for 2 · matrices
    · b k D F FLOPs. Without `longest`, experts are in one domain of switches, where every byte leaves a chip
    once: F = 2/matrices · C/W in bf16. Derived in Training ("Splitting the experts") and in Comparing
    accelerators.
    """
    crossings = 1 if longest is None else longest / 4
    # (d + c) b k D crossings / W = 2 · matrices · b k D F / C
    both, matrices = dispatch.bytes + combine.bytes, 3 if gated else 2
    return both * crossings / (2 * matrices) * network_ridge(chip, dtype, **over)


@dataclass(frozen=True, slots=True)
class FsdpWithTensor(Result):
    """FSDP over X chips and tensor parallelism over Y: the communication time of each over compute time."""

    X: float
    Y: float
    data: float  # rho_X = r X / (B n_X)
    tensor: float  # rho_Y = r Y / (F n_Y)

    def ratio(self, dial: float = 0.0) -> float:
        """Communication over compute, max(rho) + dial · min(rho): 0 overlaps both, 1 serializes them."""
        low, high = sorted((self.data, self.tensor))
        return high + dial * low

    def slowdown(self, dial: float = 0.0) -> float:
        """The slowdown max(1, max(rho) + dial · min(rho)): 0 overlaps both, 1 serializes them."""
        return max(1.0, self.ratio(dial))  # below 1, communication is fully hidden behind compute

    def __str__(self) -> str:
        return (
            f"FSDP {count(round(self.X, 1))} · TP {count(round(self.Y, 1))}, communication over compute: "
            f"FSDP {self.data:.3g}, TP {self.tensor:.3g}, together {max(self.data, self.tensor):.3g} to "
            f"{self.data + self.tensor:.3g}"
        )


def fsdp_with_tensor(
    B: float,
    n: float,
    F: float,
    X: float,
    chip: Chip,
    *,
    data_axes: int = 2,
    tensor_axes: int = 1,
    links: float = 1.0,
) -> FsdpWithTensor:
    """The ratios of n chips as X · Y with B tokens; the product of both is always r² n / (B F n_X n_Y).

    Derived in Training ("FSDP and tensor parallelism together").
    """
    r = network_ridge(chip, links=links)  # of one axis
    # 4DF/(Y n_X W) and 4BD/(X n_Y W), each over 4BDF/(n C)
    return FsdpWithTensor(X, n / X, data=r * X / (B * data_axes), tensor=r * n / X / (F * tensor_axes))


def best_fsdp_degree(B: float, n: float, F: float, *, data_axes: int = 2, tensor_axes: int = 1) -> float:
    """The FSDP degree X_opt = sqrt(B/F · n_X/n_Y · n) with equal ratios, whose sum is then least."""
    # rho_X = rho_Y: r X / (B n_X) = r n / (X F n_Y)
    return sqrt(B / F * data_axes / tensor_axes * n)


def fsdp_with_tensor_tokens(
    F: float, chip: Chip, *, data_axes: int = 2, tensor_axes: int = 1, dial: float = 0.0, links: float = 1.0
) -> float:
    """The tokens per chip B/n = (1 + dial)² r² / (n_X n_Y F) above which FSDP with TP is compute-bound."""
    # at X_opt, (1 + dial) rho* = 1 with rho* = r √(n / (B F n_X n_Y)), solved for B/n
    return ((1 + dial) * network_ridge(chip, links=links)) ** 2 / (data_axes * tensor_axes * F)

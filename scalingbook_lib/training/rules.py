"""From how many tokens a chip is a scheme compute-bound, and how many ways are best? The closed forms.

A layer is W_in[D, F] and W_out[F, D], a bf16 element takes 2 bytes, every axis is a long ring: what `step`
counts exactly is here in one line each. r = C/W, W both links of one torus axis, at `links` of their
documented rate (the scaling book's figures are for 0.9). B is tokens of the global batch, n chips, X data
ways, Y = n/X tensor ways on n_X and n_Y axes. Chapter: Training.
"""

from dataclasses import dataclass
from math import sqrt

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.training.work import work
from scalingbook_lib.units import BF16, FP32, DType, Result, count, percent, si


def flops_per_byte(chip: Chip, *, axes: int = 1, links: float = 1.0, dtype: DType = BF16) -> float:
    """r / n_ax: FLOPs for each byte that a chip takes in. 2,550 on v5p at 90%, 850 on three axes."""
    return chip.flops_per_s(dtype) / (axes * chip.axis(2, wrapped=True).bytes_per_s * links)


def data_tokens(chip: Chip, *, axes: int = 1, links: float = 1.0, gradients: DType = BF16) -> float:
    """DP and FSDP are compute-bound from B/X = r / n_X tokens a chip; 1.5 times that for fp32 gradients.

    FSDP's backward pass gathers 4DF bytes and scatters 2 · bytes · DF, for 8BDF / X FLOPs.
    """
    # (4 + 2 g) D F bytes / (n_X W) = 8 B D F / (X C), solved for B/X ("Fully sharded")
    return flops_per_byte(chip, axes=axes, links=links) * (4 + 2 * gradients.bytes) / 8


def tensor_ways(F: float, chip: Chip, *, axes: int = 1, links: float = 1.0) -> float:
    """TP is compute-bound up to Y = n_Y F / r, whatever the batch."""
    # 4 B D / (n_Y W) = 4 B D F / (Y C), solved for Y ("Tensor parallelism")
    return F / flops_per_byte(chip, axes=axes, links=links)


def pod_tokens(chip: Chip, pods: int, *, gradients: DType = BF16) -> float:
    """DP between pods is compute-bound from B/P = (P - 1)/P · C / W_dcn tokens a pod and step."""
    if not chip.dcn_bytes_per_s:
        raise ValueError(f"nobody says what data-center network {chip.name} has; take another chip")
    # an all-reduce, 2 (q - 1)/q g 2DF/c bytes, beside 8 B D F / (q c) FLOPs ("Between pods")
    return (pods - 1) / pods * chip.flops_per_s(BF16) / chip.dcn_bytes_per_s * gradients.bytes / 2


def ring_tokens(
    model: Transformer, chip: Chip, *, axes: int = 1, causal: bool = True, links: float = 1.0
) -> float:
    """Ring attention is free from t = r / n_ax · K/N tokens of a sequence on each chip; causal, from twice.

    4 T K H bytes pass a chip beside 4 t T N H FLOPs, half of them where the mask is skipped.
    """
    # 4TKH / (n_ax W) = 4 t T N H / C, without half of the pairs if causal ("Splitting the sequence")
    return flops_per_byte(chip, axes=axes, links=links) * model.K / model.N * (2 if causal else 1)


def expert_width(longest: int, chip: Chip, *, gated: bool = True, links: float = 1.0) -> float:
    """Experts over whole torus axes are compute-bound from F = r · n_long / 6, or 4 without a gate.

    Both ways 4 b k D bytes, n_long / 4 of them over each axis's W; 2 · matrices · b k D F FLOPs.
    """
    # 4 b k D n_long / (4 W) = 2 · 3 b k D F / C with a gate ("Splitting the experts")
    return flops_per_byte(chip, links=links) * longest / (6 if gated else 4)


@dataclass(frozen=True, slots=True)
class Mixed(Result):
    """FSDP over X chips and TP over Y: each one's communication over the arithmetic."""

    X: float
    Y: float
    data: float  # rho_X = r X / (B n_X)
    tensor: float  # rho_Y = r Y / (F n_Y)

    def ratio(self, dial: float = 0.0) -> float:
        """Communication over arithmetic, max(rho) + dial · min(rho): at 0 both overlap, at 1 one waits."""
        low, high = sorted((self.data, self.tensor))
        return high + dial * low

    def slowdown(self, dial: float = 0.0) -> float:
        """max(1, max(rho) + dial · min(rho)): 0 where both overlap, 1 where one waits for the other."""
        return max(1.0, self.ratio(dial))  # below 1, all of it hides behind the arithmetic

    def __str__(self) -> str:
        return (
            f"{count(round(self.X, 1))} · {count(round(self.Y, 1))} ways: data {self.data:.3g}, tensor "
            f"{self.tensor:.3g} of the arithmetic; together {max(self.data, self.tensor):.3g} to "
            f"{self.data + self.tensor:.3g}"
        )


def mixed(
    B: float,
    n: float,
    F: float,
    X: float,
    chip: Chip,
    *,
    data_axes: int = 2,
    tensor_axes: int = 1,
    links: float = 1.0,
) -> Mixed:
    """The ratios of one split; their product, r² n / (B F n_X n_Y), does not depend on it."""
    r = flops_per_byte(chip, links=links)  # of one axis
    # 4DF/(Y n_X W) and 4BD/(X n_Y W), each over 4BDF/(n C) ("FSDP and tensor parallelism together")
    return Mixed(X, n / X, data=r * X / (B * data_axes), tensor=r * n / X / (F * tensor_axes))


def best_split(B: float, n: float, F: float, *, data_axes: int = 2, tensor_axes: int = 1) -> float:
    """X_opt = sqrt(B/F · n_X/n_Y · n), where both ratios are equal, and their sum least."""
    # rho_X = rho_Y: r X / (B n_X) = r n / (X F n_Y)
    return sqrt(B / F * data_axes / tensor_axes * n)


def mixed_tokens(
    F: float, chip: Chip, *, data_axes: int = 2, tensor_axes: int = 1, dial: float = 0.0, links: float = 1.0
) -> float:
    """FSDP with TP is compute-bound from B/n = (1 + dial)² r² / (n_X n_Y F) tokens a chip, at X_opt."""
    # (1 + dial) rho* = 1 with rho* = r √(n / (B F n_X n_Y)), solved for B/n
    return ((1 + dial) * flops_per_byte(chip, links=links)) ** 2 / (data_axes * tensor_axes * F)


def effective_width(model: Transformer) -> float:
    """F_eff = P_l / (2 s D): a real layer's parameters and s pairs of gather and scatter."""
    found = work(model, 1, "none", BF16, False)
    # all L layers over all L layers' pairs: L cancels ("Real layers")
    return (found.split + found.expert) / (2 * (found.pairs + found.expert_pairs) * model.D)


@dataclass(frozen=True, slots=True)
class Pooled(Result):
    """The least that a run must hold somewhere: weights, Adam's moments, and checkpoints of D-wide arrays."""

    state: float
    checkpoints: float

    @property
    def total(self) -> float:
        """Over all chips together."""
        return self.state + self.checkpoints

    def chips(self, chip: Chip | float) -> float:
        """How many chips, or HBMs of that many bytes, would hold it."""
        return self.total / (chip.hbm_bytes if isinstance(chip, Chip) else chip)

    def __str__(self) -> str:
        return (
            f"{si(self.total, 'B')}: {si(self.state, 'B')} of weights and optimizer, "
            f"{si(self.checkpoints, 'B')} of activations"
        )


def pooled(model: Transformer, tokens: float, *, arrays: float = 4, params: float | None = None) -> Pooled:
    """bf16 weights and fp32 moments, 10 bytes a parameter; `arrays` of [tokens, D] in bf16 for each layer."""
    state = training_state(params or model, weights=BF16, gradients=None, moments=FP32, master=None).total
    # 2 bytes an element in bf16
    return Pooled(state, 2 * model.D * tokens * model.L * arrays)


@dataclass(frozen=True, slots=True)
class Goodput(Result):
    """The share of the time that counts, with checkpoints every `every_s`, and the best such interval."""

    every_s: float
    best_s: float
    share: float

    def __str__(self) -> str:
        return (
            f"a checkpoint every {si(self.every_s, 's')} (best {si(self.best_s, 's')}): "
            f"{percent(self.share, 3)} counts"
        )


def goodput(
    save_s: float, between_failures_s: float, restart_s: float, every_s: float | None = None
) -> Goodput:
    """1 - save/every - every/(2 MTBF) - restart/MTBF; best every sqrt(2 · save · MTBF) (Young 1974)."""
    # d/d(every) of save/every + every/(2 MTBF) is 0 there (young1974first)
    best = sqrt(2 * save_s * between_failures_s)
    every = best if every_s is None else every_s
    # saving, half an interval done again after a failure, and the restart
    lost = save_s / every + every / (2 * between_failures_s) + restart_s / between_failures_s
    return Goodput(every, best, max(1 - lost, 0.0))

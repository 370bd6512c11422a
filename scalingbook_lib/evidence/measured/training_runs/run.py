"""One published training run: model, chips, parallelism, and the time of a step.

Chapter: Training.
"""

from dataclasses import dataclass
from functools import cached_property
from math import nan

from scalingbook_lib.evidence.measured.published import PublishedRun
from scalingbook_lib.evidence.measured.training_runs.counting import counted
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import FP4, FP8, DType, GiB, count, dtype, percent, si

_NARROW = {"mxfp8": FP8, "nvfp4": FP4}


def products(precision: str) -> DType:
    """The dtype of weight matmuls, from a source's name for it."""
    return _NARROW.get(precision) or dtype(precision)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingRun(PublishedRun):
    """One row of `training_runs.csv`: chips = dcn · dp · fsdp · tp · cp · pp.

    `fsdp` ranks share what `zero` says (1 the optimizer's state, 2 also gradients, 3 also weights), `dp` and
    `dcn` (between slices) copy. None where the source does not say: `microbatch` (sequences a data rank works
    on at a time), `chunks` of a pipeline stage, `remat`. `remat` is "none", "full", "selective" (attention's
    scores), "selective_op" (every second product, and attention), MaxText's "minimal" (products of weights),
    the tensors that are saved ("save:") or sent to the host ("offload:"), Megatron's modules that are
    recomputed ("recompute:"), or a number of layers that are recomputed in full ("full:"). The activations of
    `offload_layers` layers wait in the host's memory.
    """

    precision: str
    T: int
    batch: int
    microbatch: int | None
    chunks: int | None
    cp: int
    ep: int
    fsdp: int
    dp: int
    dcn: int
    zero: int
    remat: str | None
    convention: str | None
    coarse: bool
    peak_flops_per_s: float  # what the source's MFU is a share of
    offload_layers: int = 0
    variant: str = ""  # the release, or the setting, where a source has several

    @property
    def dtype(self) -> DType:
        """The dtype of weight matmuls."""
        return products(self.precision)

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch * self.T

    @property
    def rate(self) -> float | None:
        """FLOP/s per chip as the source counts them, or None if it prints none."""
        if "tf" in self.printed:
            return float(self.printed["tf"]) * 1e12
        return float(self.printed["mfu"]) * self.peak_flops_per_s if "mfu" in self.printed else None

    @cached_property
    def counted(self) -> float | None:
        """The FLOPs of a step as the source counts them, or None if it does not say how."""
        return counted(self.convention, self.model, self.tokens, self.T) if self.convention else None

    @property
    def bases(self) -> list[str]:
        """The quantities from which the step time can be computed, the preferred one first.

        "s" is the time itself; "tok" is tokens/s per chip; "rate" is FLOP/s per chip, preferred if the
        printed time is coarse.
        """
        times = [what for what in ("s", "tok") if what in self.printed]
        rates = ["rate"] if self.convention and self.rate else []
        return rates + times if self.coarse else times + rates

    def seconds(self, basis: str) -> float:
        """The step time in seconds from one of `bases`."""
        if basis == "s":
            return float(self.printed["s"])
        if basis == "tok":
            return self.tokens / float(self.printed["tok"]) / self.chips
        return (self.counted or nan) / (self.rate or nan) / self.chips

    @property
    def step_s(self) -> float:
        """The step time in seconds: as printed, or from tokens/s, or from FLOP/s."""
        return self.seconds(self.bases[0])

    @property
    def memory_bytes(self) -> float | None:
        """The peak memory of a chip in bytes, or None if the source does not print it."""
        printed = self.printed.get("mem")
        return float(printed) * GiB if printed else None

    @cached_property
    def flops(self) -> float:
        """Model FLOPs of a step with causal attention, the one convention for all runs."""
        return arithmetic.training_flops(self.model, self.tokens, self.T, causal=True).total

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of all chips."""
        return self.tokens / self.step_s

    @property
    def mfu(self) -> float:
        """Model FLOPs (`flops`) over the documented peak of all chips in that dtype."""
        return self.flops / self.step_s / self.chips / self.chip.flops_per_s(self.dtype)

    @property
    def series(self) -> str:
        """A key that is equal for runs that differ only in chips, sequence length or batch."""
        what = (self.family, self.model.name, self.chip.name, self.precision, self.variant)
        ways = (self.tp, self.pp, self.chunks, self.cp, self.ep if self.experts else 1, self.zero)
        return "/".join(map(str, (*what, *ways, self.remat)))

    def __str__(self) -> str:
        ways = ("dcn", "dp", "fsdp", "tp", "cp", "pp", "ep")
        split = " ".join(f"{name} {getattr(self, name):,}" for name in ways if getattr(self, name) > 1)
        T = count(self.T)
        return (
            f"{self.model.name} on {self.chips:,} {self.chip.name}, {self.precision}, {split or 'one chip'}, "
            f"{self.batch:,} sequences of {T}: {si(self.step_s, 's')} a step, MFU {percent(self.mfu)}"
        )

"""The time to transfer a prompt's KV cache to the decode workers, and the ratio of prefill to decode workers.

Chapters: Inference; Serving Llama 3.
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.units import BF16, DType, Result, percent, si


@dataclass(frozen=True, kw_only=True, slots=True)
class KVTransfer(Result):
    """The transfer of one prompt's keys and values over the network."""

    P: int
    nbytes: float
    bytes_per_s: float  # of all NICs of the slower side
    layers: int

    @property
    def seconds(self) -> float:
        """The time of the whole transfer."""
        return self.nbytes / self.bytes_per_s

    def waited_s(self, prefill_s: float) -> float:
        """Time exposed after the prefill if each layer is sent as soon as it has been computed."""
        # Every layer but the last can be sent while later layers are computed.
        return max(self.seconds / self.layers, self.seconds - prefill_s * (self.layers - 1) / self.layers)

    def __str__(self) -> str:
        return (
            f"{si(self.nbytes, 'B')} of keys and values for {self.P:,} tokens at "
            f"{si(self.bytes_per_s, 'B/s')}: {si(self.seconds, 's')}"
        )


def transfer(
    model: Transformer,
    *,
    P: int,
    chip: Chip | None = None,
    chips: int = 1,
    to_chip: Chip | None = None,
    to_chips: int | None = None,
    kv: DType = BF16,
    bytes_per_s: float | None = None,
) -> KVTransfer:
    """From `chips` that prefill P tokens to `to_chips` that decode; the slower side sets the rate.

    Each chip has its share of its host's NICs; `bytes_per_s`, if given, is the rate of all of them.
    """
    if bytes_per_s is None:
        if chip is None:
            raise ValueError("the rate is unknown: give chip=... and chips=..., or bytes_per_s=...")
        # every byte leaves one side and enters the other
        bytes_per_s = min(_rate(chip, chips), _rate(to_chip or chip, to_chips or chips))
    return KVTransfer(P=P, nbytes=kv_cache(model, P, kv).nbytes, bytes_per_s=bytes_per_s, layers=model.L)


def _rate(chip: Chip, chips: int) -> float:
    if not chip.dcn_bytes_per_s:
        raise ValueError(f"{chip.name} has no documented network bandwidth; give bytes_per_s=...")
    return chips * chip.dcn_bytes_per_s  # each chip's share of its host's NICs, one direction


@dataclass(frozen=True, kw_only=True, slots=True)
class Pools(Result):
    """Replicas that only prefill and replicas that only decode, each kind always busy."""

    prefill_s: float  # of one prompt
    step_s: float
    batch: float
    G: float

    @property
    def ratio(self) -> float:
        """Prefill replicas per decode replica: requests/s of a decode replica times a prefill."""
        return self.prefill_s * self.requests_per_s  # n_p / n_d: both sides then pass as many requests

    @property
    def requests_per_s(self) -> float:
        """Requests/s that one decode replica completes."""
        # a sequence ends after G steps, and a batch of them is in flight (little1961proof)
        return self.batch / (self.step_s * self.G)

    def rate_per_s(self, prefill: float, decode: float) -> float:
        """Requests/s of this many replicas of each kind: the slower kind sets the rate."""
        return min(prefill / self.prefill_s, decode * self.requests_per_s)

    def idle(self, prefill: float, decode: float) -> tuple[float, float]:
        """The share of the time that prefill and decode replicas are idle."""
        rate = self.rate_per_s(prefill, decode)
        # busy: requests/s times the time of one request, over the replicas
        return 1 - rate * self.prefill_s / prefill, 1 - rate / (decode * self.requests_per_s)

    def best(self, copies: int, prefill_chips: int = 1, decode_chips: int = 1) -> tuple[int, int]:
        """The numbers of both, at most `copies` together, that serve the most requests per chip."""
        # Few enough to try all: a formula for the real ratio n_p / n_d would still have to be rounded.
        if copies < 2:
            raise ValueError(f"copies={copies}: each kind needs at least one replica; write at least 2")

        def of_a_chip(copies: tuple[int, int]) -> float:
            prefill, decode = copies
            return self.rate_per_s(prefill, decode) / (prefill * prefill_chips + decode * decode_chips)

        return max(((p, d) for p in range(1, copies) for d in range(1, copies - p + 1)), key=of_a_chip)

    def __str__(self) -> str:
        few = f"{1 / self.ratio:.3g} decode replicas per prefill replica"
        many = f"{self.ratio:.3g} prefill replicas per decode replica"
        share = percent(self.ratio / (1 + self.ratio))
        return (
            f"{few if self.ratio < 1 else many} ({share} of all replicas prefill): {si(self.prefill_s, 's')} "
            f"per prefill, {self.requests_per_s:.3g} requests/s per decode replica"
        )


def pools(prefill_s: float, step_s: float, *, batch: float, G: float) -> Pools:
    """n_p / n_d = T_p · batch / (T_step · G): one prompt's time, and G steps of a batch of sequences."""
    if min(prefill_s, step_s, batch, G) <= 0:
        raise ValueError(
            f"prefill_s={prefill_s}, step_s={step_s}, batch={batch}, G={G}: write positive numbers"
        )
    return Pools(prefill_s=prefill_s, step_s=step_s, batch=batch, G=G)

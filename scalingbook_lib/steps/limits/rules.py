"""What are the limits of one chip in round numbers, and machine by machine? What large clusters approach.

Chapter: GPUs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import BF16, DType, Told, count

MACHINES = ("A100", "H100", "H200", "B200", "B300", "GB200", "GB300", "MI300X")


@dataclass(frozen=True, slots=True)
class Rules(Told):
    """C/W in the domain of W a chip, C/W_n over domains of W_n each, and what follows for TP and EP.

    Rules of thumb: (1 - 1/n) is taken as 1. `F`: the width that `tensor_ways` is for.
    """

    chip: str
    domain: int
    domain_tokens: float  # data parallelism alone in one domain, tokens per chip
    network_tokens: float  # over domains, the chips of each splitting the weights
    F: int
    tensor_ways: float  # F W / C; exactly, Y - 1 may be that
    expert_F: float  # in a domain: C / W
    far_expert_F: float  # over many domains: g C / W_n

    def __str__(self) -> str:
        return (
            f"{self.chip}, domains of {self.domain}: data parallel {count(round(self.domain_tokens))} tokens "
            f"a chip within one and {count(round(self.network_tokens))} over them, tensor parallel "
            f"{self.tensor_ways:.3g} ways for F = {count(self.F)}, experts at least "
            f"{count(round(self.expert_F))} wide within one and {count(round(self.far_expert_F))} over them"
        )


def rules(chip: Chip, F: int = 28672, dtype: DType = BF16) -> Rules:
    """The limits of a chip with its own domain and network, documented peaks."""
    domain, nic = chip.domain_chips, chip.dcn_bytes_per_s
    if not domain or not nic:
        what = "domain of switches (take `data_parallel` on a Slice)" if not domain else "network figure"
        raise ValueError(f"{chip.name} has no {what}; rules are for {', '.join(MACHINES)}")
    C, W = chip.flops_per_s(dtype), chip.domain_bytes_per_s()
    return Rules(chip.name, domain, C / W, C / (domain * nic), F, F * W / C, C / W, C / nic)


def table(names: Iterable[str] = MACHINES, F: int = 28672) -> tuple[Rules, ...]:
    """The rules of every machine of the chapter."""
    return tuple(rules(chips.find(name), F) for name in names)

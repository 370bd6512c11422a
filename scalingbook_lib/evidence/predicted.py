"""How long does one kernel, or one collective, take by the library's present best? One function each.

`kernel_s` is a roofline at the calibrated efficiencies of serving, `collective_s` alpha and the bytes over a
share of the documented rate (`measured.collectives`). The factors are what hold four in five of the visible
rows. Chapters: Rooflines, GPUs.
"""

from functools import cache
from statistics import median

from scalingbook_lib import collectives, roofline
from scalingbook_lib.collectives import Collective
from scalingbook_lib.evidence import inference, measured
from scalingbook_lib.evidence.measured.collectives import IN_SWITCH, CollectiveFit
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.units import DType

LAUNCH_S = 4e-6  # the smallest products of `kernels.csv`, whatever they compute
NETWORK = 0.75, 3e-5  # of a network's rate, and what a collective that crosses it takes besides
KERNEL_FACTOR, COLLECTIVE_FACTOR = 1.45, 1.9


def kernel_s(chip: Chip, dtype: DType, *, flops: float, nbytes: float, what: str = "matmul") -> float:
    """Launch, then the slower of arithmetic and memory: "matmul", "attention" (of prompts) or "kv"."""
    table = inference.calibrated(chip, dtype)
    bound = roofline.operation(flops, nbytes, chip, dtype)
    reads = table.of("weights" if what == "matmul" else "kv", dtype)
    math = table.of("matmul" if what == "matmul" else "attention", dtype)
    return LAUNCH_S + max(bound.math_s / math, bound.memory_s / reads)


def collective_s(chip: Chip, kind: str, *, n: int, hosts: int, nbytes: float, ring: bool = False) -> float:
    """Of an array of `nbytes`; `kind` as HLO names it; over `hosts` domains of n / hosts chips each.

    NCCL sums in the switch from five chips on, where it can and is not told to go by a `ring`.
    """
    one_host = chip.full_mesh and hosts == 1  # a mesh has its links whether or not all chips take part
    on = Cluster.of(chip, n) if one_host else Cluster(chip=chip, chips=n, domain=n // hosts)
    in_switch = kind == "all-reduce" and hosts == 1 and n > 4 and not ring and on.levels[0].reduces
    bound_s = collectives.FORMULAS[Collective.named(kind)](nbytes, *on.levels).bandwidth_s
    if in_switch:
        bound_s = collectives.all_reduce(nbytes, *on.levels, in_switch=True).bandwidth_s
    fit = _fit(chip.name, IN_SWITCH if in_switch else kind)
    if hosts > 1:
        share, alpha_s = NETWORK
        return fit.alpha_s + alpha_s * (hosts - 1) + bound_s / share
    return fit.seconds(bound_s)


@cache
def _fit(chip: str, kind: str) -> CollectiveFit:
    """The chip's own; else the medians of all chips that were measured in that kind, or in any."""
    fits = measured.COLLECTIVES.fits
    alike = [one for key, one in fits.items() if key == (chip, kind)]
    alike = alike or [one for (_, other), one in fits.items() if other == kind] or list(fits.values())
    alpha_s, share = median(one.alpha_s for one in alike), median(one.efficiency for one in alike)
    return CollectiveFit(alike[0].chip, kind, alpha_s, share, alike[0].system)

"""The machines, the model and the measurements that the chapter uses."""

from scalingbook_lib import models, rules
from scalingbook_lib.machines import Chip, Cluster, chips
from scalingbook_lib.steps.overlap import Stages, stages
from scalingbook_lib.units import DTYPES, FP8, DType

TYPES = ("fp4", "fp8", "fp16", "bf16")
EIGHT = (
    chips.TRAINIUM3, chips.GAUDI3, chips.H100, chips.GB300, chips.MI355X, chips.MI455X, chips.RUBIN,
    chips.TPU7X,
)  # fmt: skip
V4_EXPERT, V3_EXPERT = 3072, 2048  # columns of a routed expert: DeepSeek-V4, DeepSeek-V3
V3 = models.find("DeepSeek-V3")
ACROSS = Cluster.of(chips.H100, 64)
SMS = 20  # of 132, which DeepSeek-V3 uses for dispatch and combine

# DeepEP's low-latency kernels on H800, 128 tokens, D 7,168, k 8.
# By ranks: microseconds of dispatch (fp8) and combine (bf16).
RANKS = {8: (77, 114), 16: (118, 195), 32: (155, 273), 64: (173, 314), 128: (192, 369), 256: (194, 360)}


def fastest_type(chip: Chip) -> DType:
    """The data type with the highest published matmul rate, and the widest of several with that rate."""
    rates = chip.rates()
    return DTYPES[max((name for name in reversed(TYPES) if name in rates), key=rates.__getitem__)]


def balance(chip: Chip, dtype: DType = FP8) -> float:
    """C/W_dom: FLOPs per byte that the chip sends into its scale-up domain."""
    return rules.ChipRatios(chip, dtype).balance


def layer() -> Stages:
    """A layer of DeepSeek-V3 on 64 H100s in nodes of eight, for a microbatch of 4,096 tokens on each."""
    return stages(ACROSS, V3, tokens=4096, most_domains=4)

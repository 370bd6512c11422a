"""The efficiency of training: by chip, kernel and software.

    time = ideal / (share of the class · of the chip) · slowness of the software

Classes of operations have one value for all chips, except that FlashAttention-2 is slower on Hopper by a
measured ratio. A chip has one for its matmuls. Software and its release each have a slowness and two values
for expert layers, relative to the mean of all software, which unknown software takes (`calibrated.factors`).
In expert layers, grouped matmuls reach a share of what the measured kernels reach (`kernels.grouped_ratio`,
which has the dtype); `expert_layer_s` is the host time to learn how many tokens each expert has and to launch
the rest. On chips that share memory with their host (Grace), layers are recorded as CUDA graphs, so software
has a separate value there. `exchange` is the exposed share of the all-to-all. Loads of experts are those that
balancing by a bias leaves (`steps.expert_load`).
`evidence.training.efficiencies` describes the fit. Chapter: Training.
"""

from dataclasses import replace
from functools import cache

from scalingbook_lib.calibrated import fabrics, factors, kernels
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.steps.expert_load import TRAINING_SKEW
from scalingbook_lib.training.efficiency import TrainingEfficiency
from scalingbook_lib.units import BF16

BLOCK_GPU, BLOCK_TPU = 128.0, 512.0  # keys of a block: FlashAttention's, and the default of splash attention
TYPICAL_RAMP = 1024.0  # of H100
RAMP_S = TYPICAL_RAMP / 989e12  # tokens per FLOP/s: the loss is a time, in which faster chips lose more
FLASH = "attention", "flash2"  # kernels to which `head_ramp` applies
HOPPER = "H100", "H200", "H800", "H20", "GH200"
FLASH2_ON_HOPPER = 0.52
"""The rate of FlashAttention-2 on Hopper, relative to FlashAttention-3.

It was written for the A100 and uses neither wgmma nor TMA. Forward and backward of heads of 128 and 8,192
tokens take 6.72 ms instead of 3.46 ms with a causal mask, and 12.43 ms instead of 6.63 ms without one
(Dao-AILab/flash-attention, pull request 1791).
"""

ATTENTION_KERNELS = {
    "Megatron before fused attention": "unfused",
    "llm-foundry": "early",
    "torchtitan": "flash2",
    "PyTorch": "flash2",
    "DeepSpeed": "flash2",
}
"""The attention kernels of software; all other software uses the best kernel of the chip ("attention").

"unfused" writes scores to memory. "early" are the first fused kernels, in Triton, of 2022 and 2023.
"flash2" is FlashAttention-2, which PyTorch's SDPA prefers on Hopper before release 2.11
(huggingface/transformers, pull request 48163), and which models of Transformers use under DeepSpeed and
Accelerate.
"""

type Software = tuple[str, ...]  # its name and its release


def attention_kernel(software: Software) -> str:
    """The attention kernel of software: "attention", "flash2", "early" or "unfused"."""
    return ATTENTION_KERNELS.get(software[0], "attention") if software else "attention"


def ramp(chip: Chip) -> float:
    """The sequence length at which attention reaches half of its rate, in tokens: 1,024 on H100."""
    rates = chip.rates()
    # V100 has no bf16; flops_per_s raises an error for a chip with neither
    return RAMP_S * (rates.get("bf16") or rates.get("fp16") or chip.flops_per_s())


def efficiency(
    values: Values, chip: Chip, precision: str, kernel: str | None = None, software: Software = ()
) -> TrainingEfficiency:
    """The efficiency of a chip with these values under `software`, by default the average software.

    The attention kernel is that of the software, unless `kernel` names another.
    """
    kernel = kernel or attention_kernel(software)

    def own(what: str) -> float:
        return factors.software_factor(values, software, what)

    slow, products = values["software"] * own("slowness"), factors.matmul_share(values, chip, precision)
    experts = products * kernels.grouped_ratio(precision) * values["experts"] * own("experts")
    return TrainingEfficiency(
        matmul=min(products / slow, 1.0),
        head=min(products / slow, 1.0),
        experts=min(experts / slow, 1.0),
        attention=min(_attention(values, kernel, chip) / slow, 1.0),
        memory=min(values["memory"] / slow, 1.0),
        layer_s=values["layer_s"] * slow,
        expert_layer_s=values["expert_layer_s"] * own(expert_overhead_key(chip)),
        expert_launch_s=values["expert_launch_s"],
        expert_tile=chip.matrix_side or kernels.grouped(chip, BF16).tile,
        expert_skew=TRAINING_SKEW,
        permutation=values["permutation"],
        head_ramp=values["head_ramp"] * ramp(chip) / TYPICAL_RAMP if kernel in FLASH else 0.0,
        attention_block=BLOCK_TPU if chip.torus else BLOCK_GPU,
        exchange=values["exchange"],
        overlap=1 - values["exposed"],
        ramp=ramp(chip),
        ring_launch_s=0.0 if chip.torus else fabrics.fabric(chip).launch_s,
        operands=1.0,
        torus=values["torus"],
        domain=values["domain"],
        network=values["network"],
        dcn=values["dcn"],
    )


def _attention(values: Values, kernel: str, chip: Chip) -> float:
    """The share of peak that an attention kernel reaches."""
    if kernel == "flash2":
        return values["attention"] * (FLASH2_ON_HOPPER if chip.name.startswith(HOPPER) else 1.0)
    return values[
        f"{kernel}, after A100" if kernel == "early" and not chip.name.startswith("A100") else kernel
    ]


def expert_overhead_key(chip: Chip) -> str:
    """The name of software's value for the host overhead of an expert layer."""
    return "expert_layer_s, Grace" if chip.host_bytes_per_s else "expert_layer_s"


@cache
def training(
    chip: Chip, precision: str = "bf16", kernel: str | None = None, software: Software = ()
) -> TrainingEfficiency:
    """The recorded efficiency of a chip whose matmuls are of that dtype.

    It is that of the named software and of its attention kernel, or, without a name, that of the average
    software.
    """
    found = factors.record("training")
    name = found.name(chip, precision, software[0] if software else "")
    return replace(efficiency(found.values, chip, precision, kernel, software), name=name)

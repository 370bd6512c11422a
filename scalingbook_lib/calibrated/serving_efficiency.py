"""The efficiency of inference: by chip, dtype and software.

    time = ideal / (share of the class · of the chip) · slowness of the software, and host overhead

Classes of operations have one value for all chips. A chip has one for its matmuls in each dtype and one for
reading weights (`calibrated.factors`). Overheads between steps belong to the software, on any chip.
`evidence.inference.efficiencies` describes the fit. Chapter: Inference.
"""

from functools import cache

from scalingbook_lib.calibrated import factors, kernels
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.inference import ServingEfficiency
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.steps.expert_load import SERVING_SKEW
from scalingbook_lib.units import BF16, DType

UNSCHEDULED = "gpt-fast", "PaLM's JAX", "TensorRT-LLM before continuous batching", "NeuronX", "Optimum Habana"
"""Software that runs steps back to back, without a request scheduler between them."""
FACTORS = "slowness", "kv", "fixed_s", "sequence_s", "host_s", "experts", "expert_layer_s"
"""The factors of software, relative to the mean of its kind."""


def efficiency(
    values: Values, chip: Chip, compute: DType, software: str = "", name: str = ""
) -> ServingEfficiency:
    """The efficiency of a chip with these values under `software`, by default the average software."""

    kind = "bare" if software in UNSCHEDULED else "scheduling"
    own = {what: factors.software_factor(values, (software,), what) for what in FACTORS}
    slow = values[f"{kind}: slowness"] * own["slowness"]
    products = factors.matmul_share(values, chip, compute.name)
    reads = _soft_limited(values["weights"] * factors.read_factor(values, chip) / slow)
    host = values["Grace"] if chip.host_bytes_per_s else 1.0
    vector = chip.vector_flops_per_s
    return ServingEfficiency(
        matmul=_soft_limited(products / slow),
        head=_soft_limited(products / slow),
        experts=_soft_limited(
            products * kernels.grouped_ratio(compute) * values["experts"] / slow / own["experts"]
        ),
        attention=_soft_limited(values["attention"] / slow),
        weights=reads,
        head_weights=reads,
        expert_weights=reads,
        kv=_soft_limited(values["kv"] / slow / own["kv"]),
        memory=_soft_limited(values["memory"] / slow),
        apart=values["apart"],
        torus=values["torus"],
        domain=values["hosted" if chip.joined == "PCIe" else "domain"],
        network=values["network"],
        overlap=1 - values["exposed"] if chip.torus else 0.0,
        dequantize_s=2 * values["dequantize"] / vector if vector else 0.0,
        layer_s=values["layer_s"] * slow,
        expert_layer_s=values["expert_layer_s"] * own["expert_layer_s"] * slow,
        collective_s=values["collective_s"],
        network_s=values["network_s"],
        fixed_s=host * values[f"{kind}: fixed_s"] * own["fixed_s"],
        sequence_s=host * values[f"{kind}: sequence_s"] * own["sequence_s"],
        host_s=host * values[f"{kind}: host_s"] * own["host_s"],
        expert_skew=SERVING_SKEW,
        name=name,
    )


def _soft_limited(share: float) -> float:
    """A share kept below 1 by a smooth function (0.85 becomes 0.846), so that fits keep a gradient."""
    return share / (1 + share**16) ** (1 / 16)


@cache
def serving(chip: Chip, compute: DType = BF16, software: str = "") -> ServingEfficiency:
    """The recorded efficiency of a chip whose layers compute in that dtype, under named software or any.

    Without a name, overheads are those of software that schedules requests between steps; the software in
    `UNSCHEDULED`, such as "gpt-fast", has smaller ones.
    """
    found = factors.record("inference")
    return efficiency(found.values, chip, compute, software, found.name(chip, compute.name, software))

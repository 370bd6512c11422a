"""The models, machines and data types that explorers of serving offer, and their layouts."""

from functools import lru_cache
from typing import Any

from scalingbook_book.reader.explorers.view import Bars, RefLine, Scale, Series, View
from scalingbook_book.reader.options.machines import machine
from scalingbook_lib import inference, models
from scalingbook_lib.machines import Machine
from scalingbook_lib.units import BF16, FP8, INT4, INT8, DType

SERVING_MODELS = (
    "Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Llama 2 13B", "Gemma-2 27B", "Qwen3 32B", "Mixtral 8x7B",
    "DeepSeek-V3",
)  # fmt: skip
SERVING_MACHINES = (
    "TPU v5e 2x2", "TPU v5e 2x4", "TPU v5e 4x4", "TPU v5e 4x8", "TPU v5e 8x8", "TPU v5p 2x2x2",
    "TPU v5p 2x2x4", "TPU v6e 2x2", "TPU v6e 2x4", "TPU v6e 4x4", "TPU7x 2x2x1", "H100 × 1", "H100 × 8",
    "H200 × 8", "B200 × 8", "GB300 × 8", "MI355X × 8", "Trainium3 × 16", "Gaudi3 × 8", "MI455X × 8",
    "Rubin × 8",
)  # fmt: skip
TYPES = {"bf16": BF16, "int8": INT8, "int4": INT4}
PRICES = ("as listed", "0.5", "1", "1.5", "2", "3", "4", "6", "8", "12")


def stored(name: str, where: Machine) -> DType:
    """Return the data type with this name on this chip: 8 bits are fp8 if the chip has no int8 matmul."""
    found = TYPES[name]
    return FP8 if found is INT8 and where.chip.torus is None else found


def layout(model: models.Transformer, chips: int, group: int, **types: Any) -> inference.Layout:
    """Return all chips as one tensor-parallel group, with the experts sharded over all chips.

    The cache is sharded by heads before sequences.
    """
    K = max(model.K, 1)
    heads = max(n for n in range(1, min(group, K) + 1) if group % n == 0 and K % n == 0)
    E = model.experts.E if model.experts else 1
    ep = max(n for n in range(1, chips + 1) if chips % n == 0 and E % n == 0)
    return inference.Layout(tp=chips, ep=ep, attention_dp=chips // group, kv_batch=group // heads, **types)


@lru_cache(maxsize=64)
def spread(model: str, where: str, weights: str, kv: str) -> inference.Layout:
    """Return one model replica over a whole machine.

    The cache is sharded by heads before sequences, and experts are sharded over all chips.
    """
    m, on = models.find(model), machine(where)
    types = {"weights": stored(weights, on), "kv": stored(kv, on)}
    group = 1 if m.latent else max(n for n in range(1, m.N + 1) if on.chips % n == 0)
    return layout(m, on.chips, group, **types)


def refused(model: str, where: str) -> View:
    """Return the view for a model that does not fit: int8 bytes per chip with one sequence, and the HBM."""
    on = machine(where)
    held = inference.memory(models.find(model), spread(model, where, "int8", "int8"), on, batch=1, S=1)
    bars = Bars(
        Scale("bytes of a chip", "B"),
        ["weights"],
        (Series("weights", [held.total], 0),),
        refs=(RefLine("HBM", on.chip.hbm_bytes),),
        title="What each chip would hold",
    )
    return View(f"{model} and one sequence do not fit on {where}.", (bars,))

"""The catalogue of chips: every figure beside its source and beside what other sources say.

`chips.V5E`, `chips.find("H100")`, `chips.CATALOGUE`, `chips.TPUS` and `chips.GPUS`; `chips.KNOWN` adds other
vendors' and announced chips; `chips.Slice` makes slices of TPUs. Figures are rows of `tpus.csv`,
`nvidia.csv`, `amd.csv` and `further.csv`, each for a whole chip and not for a core; where a datasheet counts
sparsity, the row holds the dense half. The rows of `data/chips.csv` are the same figures as they were
collected. Chapters: Rooflines, TPUs, GPUs, Comparing accelerators.

>>> print(find("v5e"))
TPU v5e: 197 TFLOPs/s in bf16, 16 GiB of HBM at 819 GB/s, 4 links of 50 GB/s each way
>>> print(V5E.sources["hbm_bytes_per_s"].as_of)
2026-11-21
"""

from dataclasses import replace

from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.machines.chips import table
from scalingbook_lib.machines.slices import Slice, SliceMesh
from scalingbook_lib.machines.torus import Axis, SliceError, Torus

__all__ = [
    "CATALOGUE",
    "FURTHER",
    "GPUS",
    "HALF_TPU7X",
    "KNOWN",
    "L40S",
    "OTHERS",
    "RTX_PRO_6000",
    "TPUS",
    "Axis",
    "Chip",
    "Slice",
    "SliceError",
    "SliceMesh",
    "Source",
    "Torus",
    "find",
]

TPUS = table.read("tpus", "Google")
V2, V3, V4, V5E, V5P, V6E, TPU7X = TPUS
*_NVIDIA, L40S, RTX_PRO_6000 = table.read("nvidia", "NVIDIA")
"""An Ada and a Blackwell GPU for PCIe slots, with GDDR and without NVLink: their one link is the slot.

`find` knows them; the catalogue, which holds chips connected by links of their own, does not."""
V100, A100, H100, H200, B200, B300, GB200, GB300 = _NVIDIA
_AMD = table.read("amd", "AMD", full_mesh=True)
"""Eight chips per board, one link per pair: a collective of all eight uses seven links, one of two one."""
MI300X, MI325X, MI355X = _AMD
GPUS = (*_NVIDIA, *_AMD)
OTHERS = table.read("others", "others")
"""Chips that appear only in published measurements: peak rates alone, as if connected by switches."""
CATALOGUE = {chip.name: chip for chip in (*TPUS, *GPUS)}
FURTHER = table.read("further", "")
"""The chips of Comparing accelerators: other vendors, announced chips, SRAM accelerators, two workstations.

Explorers offer those that have the figures which a view needs."""
(TRAINIUM2, TRAINIUM3, GAUDI3, MI350X, MI455X, RUBIN, TPU8T, TPU8I, JALAPENO, MAIA200, ASCEND950DT,
 GROQ3, WSE3, M3_ULTRA, M5_ULTRA, DGX_SPARK) = FURTHER  # fmt: skip
KNOWN = CATALOGUE | {chip.name: chip for chip in FURTHER}
_ALSO = {"trillium": V6E, "ironwood": TPU7X, "v7x": TPU7X, "rtxpro6000se": RTX_PRO_6000, "l40s": L40S}

_HALVED = ("bf16_flops_per_s", "fp8_flops_per_s", "hbm_bytes", "hbm_bytes_per_s", "vmem_bytes")
HALF_TPU7X = replace(
    TPU7X,
    name="half a TPU7x",
    **{figure: getattr(TPU7X, figure) / 2 for figure in _HALVED},
    cores=1,
    matrix_units=2,
)
"""One of the two devices as which JAX and the compiler see a TPU7x; it is not in the catalogue."""


def find(name: str) -> Chip:
    """The chip of that name in any usual spelling ('TPU v5e', 'v5e', 'h100', 'Trillium').

    ValueError if unknown.
    """
    known = {_spelled(chip.name): chip for chip in KNOWN.values()} | _ALSO
    if _spelled(name) not in known:
        raise ValueError(f"no chip {name!r} in the catalogue; there are {', '.join(KNOWN)}")
    return known[_spelled(name)]


def _spelled(name: str) -> str:
    return "".join(name.lower().replace("-", "").split()).removeprefix("tpu")

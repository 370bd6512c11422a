"""The catalog of chips: every number with its source and with differing values in other sources.

It is used as `chips.V5E`, `chips.find("H100")`, `chips.CATALOG`, `chips.TPUS` and `chips.GPUS`;
`chips.KNOWN` adds other vendors' and announced chips, and `chips.ALL` also the boards and variants that
`find` knows; `chips.Slice` builds slices of TPUs. The numbers are rows of `tpus.csv`, `nvidia.csv`,
`amd.csv`, `further.csv` and `others.csv`, each for a whole chip and not for a core; if a datasheet counts
sparsity, the row holds the dense half. Chapters: Rooflines; TPUs; GPUs; Comparing accelerators.

>>> print(find("v5e"))
TPU v5e: 197 TFLOPs/s in bf16, 16 GiB of HBM at 819 GB/s, 4 links of 50 GB/s each way
>>> print(V5E.sources["hbm_bytes_per_s"].as_of)
2026-11-21
"""

from dataclasses import replace

from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.machines.chips import names, table
from scalingbook_lib.machines.slices import Slice, SliceMesh
from scalingbook_lib.machines.torus import Axis, SliceError, Torus

__all__ = [
    "A100_40GB",
    "ALL",
    "CATALOG",
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

`find` knows them; the catalog, which holds chips connected by their own links, does not.
"""
V100, A100, H100, H200, B200, B300, GB200, GB300 = _NVIDIA
_AMD = table.read("amd", "AMD", joined="full mesh")
"""Eight chips per board with one link per pair: an 8-chip collective uses seven links, a 2-chip one, one."""
MI300X, MI325X, MI355X = _AMD
GPUS = (*_NVIDIA, *_AMD)
CATALOG = {chip.name: chip for chip in (*TPUS, *GPUS)}
FURTHER = table.read("further")
"""The chips of Comparing accelerators: other vendors, announced chips, SRAM accelerators, two workstations.

Explorers offer those that have the numbers that a view needs.
"""
(TRAINIUM2, TRAINIUM3, GAUDI3, MI350X, MI455X, RUBIN, TPU8T, TPU8I, JALAPENO, MAIA200, ASCEND950DT,
 GROQ3, WSE3, M3_ULTRA, M5_ULTRA, DGX_SPARK) = FURTHER  # fmt: skip
KNOWN = CATALOG | {chip.name: chip for chip in FURTHER}
"""The chips of the book's tables and explorers."""
OTHERS = (L40S, RTX_PRO_6000, *table.read("others", known=KNOWN | {RTX_PRO_6000.name: RTX_PRO_6000}))
"""Chips that people have and that no chapter covers: PCIe boards, variants, older accelerators."""
ALL = KNOWN | {chip.name: chip for chip in OTHERS}
"""Every chip that `find` finds."""
A100_40GB = ALL["A100 40GB"]

_HALVED = ("bf16_flops_per_s", "fp8_flops_per_s", "hbm_bytes", "hbm_bytes_per_s", "vmem_bytes")
HALF_TPU7X = replace(
    TPU7X,
    name="half a TPU7x",
    **{figure: getattr(TPU7X, figure) / 2 for figure in _HALVED},
    cores=1,
    matrix_units=2,
)
"""One of the two devices that JAX and the compiler see in a TPU7x; it is not in the catalog."""


def find(name: str) -> Chip:
    """The chip of that name in any usual spelling: 'v5e', 'NVIDIA H100 80GB HBM3', 'A100-SXM4-40GB'.

    Raises a ValueError that lists the nearest names if the chip is unknown.
    """
    return names.find(name, ALL)

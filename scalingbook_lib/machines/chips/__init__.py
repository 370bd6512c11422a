"""Which chips does this book speak of, and what are they capable of?

A catalogue: every figure stands beside its source, and where sources disagree, beside what the others
print. `chips.V5E`, `chips.find("H100")`, `chips.CATALOGUE`, `chips.TPUS`, `chips.GPUS`; slices of TPUs with
`chips.Slice`. `tpus` and `gpus` hold the figures, `sources` who says so. The rows of `data/chips.csv` are
the same figures as they were collected. Chapters: Rooflines, TPUs, GPUs.
"""

from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.machines.chips.gpus import (
    A100,
    B200,
    B300,
    GB200,
    GB300,
    GPUS,
    H100,
    H200,
    MI300X,
    MI325X,
    MI355X,
    RTX_PRO_6000,
    V100,
)
from scalingbook_lib.machines.chips.tpus import HALF_TPU7X, TPU7X, TPUS, V2, V3, V4, V5E, V5P, V6E
from scalingbook_lib.machines.slices import Slice, SliceMesh
from scalingbook_lib.machines.torus import Axis, SliceError, Torus

__all__ = [
    "A100", "B200", "B300", "CATALOGUE", "GB200", "GB300", "GPUS", "H100", "H200", "HALF_TPU7X", "MI300X",
    "MI325X", "MI355X", "RTX_PRO_6000", "TPU7X", "TPUS", "V2", "V3", "V4", "V5E", "V5P", "V6E", "V100",
    "Axis", "Chip", "Slice", "SliceError", "SliceMesh", "Source", "Torus", "find",
]  # fmt: skip

CATALOGUE = {chip.name: chip for chip in (*TPUS, *GPUS)}
_ALSO = {"trillium": V6E, "ironwood": TPU7X, "v7x": TPU7X, "rtxpro6000se": RTX_PRO_6000}


def find(name: str) -> Chip:
    """The chip of that name, however spelled: 'TPU v5e', 'v5e', 'h100', 'Trillium'."""
    known = {_spelled(chip.name): chip for chip in CATALOGUE.values()} | _ALSO
    if _spelled(name) not in known:
        raise ValueError(f"no chip {name!r} in the catalogue; there are {', '.join(CATALOGUE)}")
    return known[_spelled(name)]


def _spelled(name: str) -> str:
    return "".join(name.lower().split()).removeprefix("tpu")

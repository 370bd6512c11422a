"""What joins GPUs, and what does it carry? The explorers of the GPU chapter."""

from scalingbook_lib.chapters.gpus.explorers.alltoall import ALLTOALL
from scalingbook_lib.chapters.gpus.explorers.atlas import ATLAS
from scalingbook_lib.chapters.gpus.explorers.fabric import FABRIC
from scalingbook_lib.chapters.gpus.explorers.inner_axis import INNER_AXIS
from scalingbook_lib.chapters.gpus.explorers.measured import MEASURED
from scalingbook_lib.chapters.gpus.explorers.moe import MOE
from scalingbook_lib.chapters.gpus.explorers.occupancy import OCCUPANCY
from scalingbook_lib.chapters.gpus.explorers.plan import PLAN
from scalingbook_lib.chapters.gpus.explorers.sharp import SHARP

EXPLORERS = (ATLAS, FABRIC, MEASURED, SHARP, INNER_AXIS, ALLTOALL, PLAN, MOE, OCCUPANCY)

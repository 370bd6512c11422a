"""What joins GPUs, and what does it carry? The explorers of the GPU chapter."""

from scalingbook_lib.explorers.gpus_alltoall import ALLTOALL
from scalingbook_lib.explorers.gpus_atlas import ATLAS
from scalingbook_lib.explorers.gpus_fabric import FABRIC
from scalingbook_lib.explorers.gpus_inner_axis import INNER_AXIS
from scalingbook_lib.explorers.gpus_measured import MEASURED
from scalingbook_lib.explorers.gpus_moe import MOE
from scalingbook_lib.explorers.gpus_occupancy import OCCUPANCY
from scalingbook_lib.explorers.gpus_plan import PLAN
from scalingbook_lib.explorers.gpus_sharp import SHARP

EXPLORERS = (ATLAS, FABRIC, MEASURED, SHARP, INNER_AXIS, ALLTOALL, PLAN, MOE, OCCUPANCY)

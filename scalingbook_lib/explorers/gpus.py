"""What joins GPUs, and what does it carry? The explorers of the GPU chapter."""

from scalingbook_lib.explorers.gpus_atlas import ATLAS
from scalingbook_lib.explorers.gpus_fabric import FABRIC
from scalingbook_lib.explorers.gpus_measured import MEASURED
from scalingbook_lib.explorers.gpus_sharp import SHARP

EXPLORERS = (ATLAS, FABRIC, MEASURED, SHARP)

"""What joins GPUs, and what does it carry? The explorers of the GPU chapter."""

from scalingbook_lib.explorers.gpus_atlas import ATLAS
from scalingbook_lib.explorers.gpus_fabric import FABRIC

EXPLORERS = (ATLAS, FABRIC)

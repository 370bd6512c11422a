"""How is one training step spread over many chips? The explorers of the training chapter."""

from scalingbook_lib.explorers.training_context import CONTEXT
from scalingbook_lib.explorers.training_dcn import DCN
from scalingbook_lib.explorers.training_dial import DIAL
from scalingbook_lib.explorers.training_experts import EXPERTS
from scalingbook_lib.explorers.training_pipeline import PIPELINE
from scalingbook_lib.explorers.training_split import SPLIT
from scalingbook_lib.explorers.training_steps import STEPS
from scalingbook_lib.explorers.training_zero import ZERO

EXPLORERS = (STEPS, ZERO, DIAL, SPLIT, CONTEXT, PIPELINE, EXPERTS, DCN)

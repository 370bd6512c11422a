"""How is one training step spread over many chips? The explorers of the training chapter."""

from scalingbook_lib.chapters.training.explorers.context import CONTEXT
from scalingbook_lib.chapters.training.explorers.dcn import DCN
from scalingbook_lib.chapters.training.explorers.dial import DIAL
from scalingbook_lib.chapters.training.explorers.experts import EXPERTS
from scalingbook_lib.chapters.training.explorers.pipeline import PIPELINE
from scalingbook_lib.chapters.training.explorers.split import SPLIT
from scalingbook_lib.chapters.training.explorers.steps import STEPS
from scalingbook_lib.chapters.training.explorers.zero import ZERO

EXPLORERS = (STEPS, ZERO, DIAL, SPLIT, CONTEXT, PIPELINE, EXPERTS, DCN)

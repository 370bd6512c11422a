"""What does a token cost once a model is trained? The explorers of the chapter on inference."""

from scalingbook_lib.chapters.inference.explorers.batch import BATCH
from scalingbook_lib.chapters.inference.explorers.cache import CACHE
from scalingbook_lib.chapters.inference.explorers.experts import EXPERTS
from scalingbook_lib.chapters.inference.explorers.intensity import INTENSITY
from scalingbook_lib.chapters.inference.explorers.layout import LAYOUT
from scalingbook_lib.chapters.inference.explorers.player import PLAYER
from scalingbook_lib.chapters.inference.explorers.prefix import PREFIX
from scalingbook_lib.chapters.inference.explorers.sampling import SAMPLING
from scalingbook_lib.chapters.inference.explorers.speculative import SPECULATIVE
from scalingbook_lib.chapters.inference.explorers.split import SPLIT

EXPLORERS = (SAMPLING, BATCH, INTENSITY, CACHE, LAYOUT, SPLIT, PLAYER, PREFIX, SPECULATIVE, EXPERTS)

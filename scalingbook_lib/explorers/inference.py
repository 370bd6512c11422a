"""What does a token cost once a model is trained? The explorers of the chapter on inference."""

from scalingbook_lib.explorers.inference_batch import BATCH
from scalingbook_lib.explorers.inference_cache import CACHE
from scalingbook_lib.explorers.inference_experts import EXPERTS
from scalingbook_lib.explorers.inference_intensity import INTENSITY
from scalingbook_lib.explorers.inference_layout import LAYOUT
from scalingbook_lib.explorers.inference_player import PLAYER
from scalingbook_lib.explorers.inference_prefix import PREFIX
from scalingbook_lib.explorers.inference_sampling import SAMPLING
from scalingbook_lib.explorers.inference_speculative import SPECULATIVE
from scalingbook_lib.explorers.inference_split import SPLIT

EXPLORERS = (SAMPLING, BATCH, INTENSITY, CACHE, LAYOUT, SPLIT, PLAYER, PREFIX, SPECULATIVE, EXPERTS)

"""What does a Transformer cost? The explorers of the Transformers chapter."""

from scalingbook_lib.explorers.transformers_kv import KV
from scalingbook_lib.explorers.transformers_model import MODEL
from scalingbook_lib.explorers.transformers_remat import REMAT
from scalingbook_lib.explorers.transformers_share import SHARE

EXPLORERS = (MODEL, SHARE, KV, REMAT)

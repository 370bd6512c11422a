"""What does a Transformer cost? The explorers of the Transformers chapter."""

from scalingbook_lib.explorers.transformers_einsum import EINSUM
from scalingbook_lib.explorers.transformers_kv import KV
from scalingbook_lib.explorers.transformers_model import MODEL
from scalingbook_lib.explorers.transformers_remat import REMAT
from scalingbook_lib.explorers.transformers_router import ROUTER
from scalingbook_lib.explorers.transformers_share import SHARE
from scalingbook_lib.explorers.transformers_softmax import SOFTMAX

EXPLORERS = (MODEL, SHARE, KV, REMAT, EINSUM, ROUTER, SOFTMAX)

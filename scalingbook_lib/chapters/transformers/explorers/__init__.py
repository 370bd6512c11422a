"""What does a Transformer cost? The explorers of the Transformers chapter."""

from scalingbook_lib.chapters.transformers.explorers.einsum import EINSUM
from scalingbook_lib.chapters.transformers.explorers.kv import KV
from scalingbook_lib.chapters.transformers.explorers.model import MODEL
from scalingbook_lib.chapters.transformers.explorers.remat import REMAT
from scalingbook_lib.chapters.transformers.explorers.router import ROUTER
from scalingbook_lib.chapters.transformers.explorers.share import SHARE
from scalingbook_lib.chapters.transformers.explorers.softmax import SOFTMAX

EXPLORERS = (MODEL, SHARE, KV, REMAT, EINSUM, ROUTER, SOFTMAX)

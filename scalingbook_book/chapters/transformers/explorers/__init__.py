"""The explorers of the chapter on Transformers."""

from scalingbook_book.chapters.transformers.explorers import (
    balance,
    einsum,
    kv,
    model,
    remat,
    router,
    share,
    softmax,
)

EXPLORERS = (
    model.MODEL,
    share.SHARE,
    kv.KV,
    remat.REMAT,
    einsum.EINSUM,
    router.ROUTER,
    balance.BALANCE,
    softmax.SOFTMAX,
)

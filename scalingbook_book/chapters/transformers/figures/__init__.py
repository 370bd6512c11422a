"""The figures of the chapter on Transformers, in the order of its pages."""

from scalingbook_book.chapters.transformers.figures import (
    balance,
    block,
    experts,
    layer,
    memory,
    models,
    products,
    serving,
)

FIGURES = (
    layer.layer,
    block.block,
    products.product,
    products.backward,
    models.where_parameters_are,
    products.causal,
    memory.kept,
    memory.sixteen_bytes,
    memory.heads,
    serving.prefill_decode,
    experts.grouped,
    balance.slots,
    balance.sparsity_map,
)

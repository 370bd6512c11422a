"""What is drawn in the chapter on Transformers? Its figures, in its order."""

from scalingbook_lib.chapters.transformers.figures import experts, layer, memory, models, products, serving

FIGURES = (
    layer.layer,
    products.product,
    products.backward,
    models.where_parameters_are,
    products.causal,
    memory.kept,
    memory.sixteen_bytes,
    memory.heads,
    serving.prefill_decode,
    experts.grouped,
)

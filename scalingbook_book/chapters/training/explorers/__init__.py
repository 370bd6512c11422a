"""How is one training step spread over many chips? The explorers of the training chapter."""

from scalingbook_book.chapters.training.explorers import (
    context,
    dcn,
    dial,
    experts,
    pipeline,
    split,
    steps,
    zero,
)

EXPLORERS = (
    steps.STEPS,
    zero.ZERO,
    dial.DIAL,
    split.SPLIT,
    context.CONTEXT,
    pipeline.PIPELINE,
    experts.EXPERTS,
    dcn.DCN,
)

"""Explorers of the chapter on training: how one training step is sharded over many chips."""

from scalingbook_book.chapters.training.explorers import (
    context,
    dcn,
    dial,
    experts,
    pipeline,
    scaling,
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
    scaling.SCALING,
)

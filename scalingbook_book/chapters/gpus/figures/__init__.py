"""The figures of the chapters on the GPU chip and on GPU networks, in their order."""

from scalingbook_book.chapters.gpus.figures import (
    chip,
    errors,
    ladder,
    node,
    nodes,
    pipeline,
    plans,
    spread,
    switch,
    tiles,
    warps,
)

FIGURES = (
    chip.sm,
    chip.peak,
    warps.divergence,
    warps.tanks,
    tiles.patch,
    tiles.waves,
    ladder.ladder,
    pipeline.pipeline,
    node.gather,
    node.three_nodes,
    switch.sums,
    nodes.line,
    errors.errors,
    nodes.fat_tree,
    nodes.stages,
    spread.bounds,
    spread.token_trip,
    plans.audit,
)

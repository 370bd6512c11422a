"""Figures of the chapter on training, in the order of its pages."""

from scalingbook_book.chapters.training.figures import (
    batch,
    groups,
    machine,
    optimum,
    packing,
    schedules,
    schemes,
    widths,
)

FIGURES = (
    schemes.same_batch,
    schemes.four_schemes,
    schemes.three_lanes,
    machine.zero,
    groups.hybrid,
    machine.piece_of_a_ring,
    machine.memory_of_a_chip,
    machine.bubble,
    batch.floor_of_days,
    batch.recipe,
    packing.packed,
    *schedules.FIGURES,
    optimum.flat_optimum,
    widths.widths,
)

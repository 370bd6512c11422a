"""Figures of the chapter on rooflines, in the order of the pages."""

from scalingbook_book.chapters.rooflines.figures import copies, cuts, ladder, reuse, roof, seen, waiting

FIGURES = (
    waiting.wait,
    waiting.overlap,
    roof.roof,
    reuse.reuse,
    roof.batch,
    roof.ridges,
    copies.copies,
    cuts.tile,
    cuts.cuts,
    ladder.ladder,
    seen.shares,
    seen.hopeless,
    seen.knees,
)

"""The figures of the chapter on profiling, in the order of the pages."""

from scalingbook_book.chapters.profiling.figures import clocks, compiled, recorded

FIGURES = (
    recorded.before_after,
    clocks.lanes,
    recorded.stages,
    compiled.line,
    compiled.padding,
    compiled.groups,
    clocks.passes,
    clocks.ring,
    recorded.alive,
    recorded.four_faults,
    clocks.where,
    clocks.gpu,
)

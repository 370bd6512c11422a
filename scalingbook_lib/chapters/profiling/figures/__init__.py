"""What is drawn in the chapter on profiling? Its figures, in its order."""

from scalingbook_lib.chapters.profiling.figures import clocks, compiled

FIGURES = (clocks.lanes, compiled.line, compiled.padding, compiled.groups, clocks.passes, clocks.ring)

"""What is drawn in the chapter on rooflines? Its figures, in its order."""

from scalingbook_lib.chapters.rooflines.figures import reuse, waiting

FIGURES = (waiting.wait, reuse.reuse)

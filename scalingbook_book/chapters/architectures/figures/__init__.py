"""What is drawn in the chapter on other architectures? Its figures, in its order."""

from scalingbook_book.chapters.architectures.figures import states, writing

FIGURES = (
    states.million,
    states.family,
    states.executions,
    states.strip,
    states.relay,
    writing.funnels,
    writing.blocks,
    writing.eye,
    writing.video,
)

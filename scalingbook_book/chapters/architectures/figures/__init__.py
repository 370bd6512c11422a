"""The figures of the chapter on other architectures, in the order of the page."""

from scalingbook_book.chapters.architectures.figures import frontier, states, writing

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
    frontier.racks,
    frontier.pod,
)

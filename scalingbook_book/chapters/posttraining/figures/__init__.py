"""What is drawn in the chapter on what comes after pretraining? Its figures, in its order."""

from scalingbook_book.chapters.posttraining.figures import energy, loop, stops

FIGURES = (
    loop.three_steps,
    loop.loop,
    loop.tail,
    stops.stops,
    stops.interval,
    stops.ladder,
    energy.boundaries,
    energy.drawn,
)

"""The figures of the chapters on RL post-training, fault tolerance and energy, in their order."""

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

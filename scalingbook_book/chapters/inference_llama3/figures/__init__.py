"""The figures of the chapter on serving Llama 3, in the order of its pages."""

from scalingbook_book.chapters.inference_llama3.figures import prices, steps, waits

FIGURES = (
    prices.front,
    steps.tanks,
    steps.step,
    steps.corners,
    waits.cycle,
    waits.gaps,
    prices.tornado,
    steps.losses,
)

"""What is drawn in the chapter on serving Llama 3? Its figures, in its order."""

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

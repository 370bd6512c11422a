"""The figures of the chapter on training Llama 3, in the order of its pages."""

from scalingbook_book.chapters.training_llama3.figures import plans, pod, reached

FIGURES = (
    pod.pod,
    pod.who_fills_memory,
    plans.four_checks,
    plans.a_place_for_35,
    plans.four_plans,
    plans.whole_slice,
    reached.three_mfus,
    reached.failures,
)

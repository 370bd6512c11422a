"""What is drawn in the chapter on inference? Its figures, in its order."""

from scalingbook_book.chapters.inference.figures import caches, steps, users

FIGURES = (
    steps.two_phases,
    steps.loop,
    steps.step,
    caches.pages,
    users.front,
    caches.cache_split,
    caches.owners,
    users.draft,
)

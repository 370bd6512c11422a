"""The figures of the chapter on inference, in its order."""

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

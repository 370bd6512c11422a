"""The figures of the chapter on inference, in its order."""

from scalingbook_book.chapters.inference.figures import agents, caches, prefixes, queues, steps, users, wide

FIGURES = (
    steps.two_phases,
    steps.loop,
    steps.step,
    prefixes.storage,
    caches.pages,
    users.front,
    caches.cache_split,
    caches.owners,
    prefixes.radix,
    prefixes.cliff,
    users.draft,
    queues.states,
    queues.saturation,
    wide.group_sizes,
    agents.reuse,
    agents.acceptance,
)

"""The explorers of the chapter on inference."""

from scalingbook_book.chapters.inference.explorers import (
    batch,
    cache,
    experts,
    intensity,
    layout,
    player,
    prefix,
    sampling,
    sessions,
    speculative,
    split,
    tiers,
)

EXPLORERS = (
    sampling.SAMPLING,
    batch.BATCH,
    intensity.INTENSITY,
    cache.CACHE,
    layout.LAYOUT,
    split.SPLIT,
    player.PLAYER,
    prefix.PREFIX,
    tiers.TIERS,
    speculative.SPECULATIVE,
    experts.EXPERTS,
    sessions.SESSIONS,
)

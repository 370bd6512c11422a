"""The explorers of the chapters on RL post-training, fault tolerance and energy, in their order."""

from scalingbook_book.chapters.posttraining.explorers import energy, failures, rollouts, sites

EXPLORERS = (rollouts.SLOTS, rollouts.SPLIT, failures.LADDER, failures.SPARES, energy.ENERGY, sites.SITES)

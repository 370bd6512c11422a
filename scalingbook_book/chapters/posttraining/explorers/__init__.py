"""What can be tried in the chapter on what comes after pretraining? Its explorers, in their order."""

from scalingbook_book.chapters.posttraining.explorers import energy, failures, rollouts, sites

EXPLORERS = (rollouts.SLOTS, rollouts.SPLIT, failures.LADDER, failures.SPARES, energy.ENERGY, sites.SITES)

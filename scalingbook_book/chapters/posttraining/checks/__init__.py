"""The exercises on RL post-training, fault tolerance and energy, in the order of their headings."""

from scalingbook_book.chapters.posttraining.checks import energy, rollouts, stops

CHECKS = (*rollouts.CHECKS, *stops.CHECKS, *energy.CHECKS)

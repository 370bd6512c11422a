"""How does a TPU work, and how long does anything on it take? The explorers of the TPU chapter."""

from scalingbook_lib.chapters.tpus.explorers.chain import CHAIN
from scalingbook_lib.chapters.tpus.explorers.generations import GENERATIONS
from scalingbook_lib.chapters.tpus.explorers.ladder import LADDER
from scalingbook_lib.chapters.tpus.explorers.padding import PADDING
from scalingbook_lib.chapters.tpus.explorers.peak import PEAK
from scalingbook_lib.chapters.tpus.explorers.pipeline import PIPELINE
from scalingbook_lib.chapters.tpus.explorers.route import ROUTE
from scalingbook_lib.chapters.tpus.explorers.slices import SLICES
from scalingbook_lib.chapters.tpus.explorers.systolic import SYSTOLIC

EXPLORERS = (SYSTOLIC, PIPELINE, PADDING, LADDER, SLICES, PEAK, CHAIN, ROUTE, GENERATIONS)

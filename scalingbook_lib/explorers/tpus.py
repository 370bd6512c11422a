"""How does a TPU work, and how long does anything on it take? The explorers of the TPU chapter."""

from scalingbook_lib.explorers.tpus_chain import CHAIN
from scalingbook_lib.explorers.tpus_generations import GENERATIONS
from scalingbook_lib.explorers.tpus_ladder import LADDER
from scalingbook_lib.explorers.tpus_padding import PADDING
from scalingbook_lib.explorers.tpus_peak import PEAK
from scalingbook_lib.explorers.tpus_pipeline import PIPELINE
from scalingbook_lib.explorers.tpus_route import ROUTE
from scalingbook_lib.explorers.tpus_slices import SLICES
from scalingbook_lib.explorers.tpus_systolic import SYSTOLIC

EXPLORERS = (SYSTOLIC, PIPELINE, PADDING, LADDER, SLICES, PEAK, CHAIN, ROUTE, GENERATIONS)

"""What did the compiler make of it, and where does the time go? The explorers of the chapter on profiling."""

from scalingbook_lib.chapters.profiling.explorers.bundles import BUNDLES
from scalingbook_lib.chapters.profiling.explorers.cycles import CYCLES
from scalingbook_lib.chapters.profiling.explorers.dissector import DISSECTOR
from scalingbook_lib.chapters.profiling.explorers.tiles import TILES_EXPLORER
from scalingbook_lib.chapters.profiling.explorers.timeline import TIMELINE

EXPLORERS = (DISSECTOR, TILES_EXPLORER, CYCLES, TIMELINE, BUNDLES)

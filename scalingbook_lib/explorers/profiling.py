"""What did the compiler make of it, and where does the time go? The explorers of the chapter on profiling."""

from scalingbook_lib.explorers.profiling_bundles import BUNDLES
from scalingbook_lib.explorers.profiling_cycles import CYCLES
from scalingbook_lib.explorers.profiling_dissector import DISSECTOR
from scalingbook_lib.explorers.profiling_tiles import TILES_EXPLORER
from scalingbook_lib.explorers.profiling_timeline import TIMELINE

EXPLORERS = (DISSECTOR, TILES_EXPLORER, CYCLES, TIMELINE, BUNDLES)

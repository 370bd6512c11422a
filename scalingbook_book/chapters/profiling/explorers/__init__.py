"""What did the compiler make of it, and where does the time go? The explorers of the chapter on profiling."""

from scalingbook_book.chapters.profiling.explorers import bundles, cycles, dissector, tiles, timeline

EXPLORERS = (dissector.DISSECTOR, tiles.TILES_EXPLORER, cycles.CYCLES, timeline.TIMELINE, bundles.BUNDLES)

"""The explorers of the chapter on profiling: compiled programs, and where their time goes."""

from scalingbook_book.chapters.profiling.explorers import bundles, cycles, dissector, tiles, timeline

EXPLORERS = (dissector.DISSECTOR, tiles.TILES_EXPLORER, cycles.CYCLES, timeline.TIMELINE, bundles.BUNDLES)

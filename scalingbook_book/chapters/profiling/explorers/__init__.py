"""The explorers of the chapter on profiling: what the compiler made of a program, and where its time goes."""

from scalingbook_book.chapters.profiling.explorers import bundles, cycles, dissector, tiles, timeline

EXPLORERS = (dissector.DISSECTOR, tiles.TILES_EXPLORER, cycles.CYCLES, timeline.TIMELINE, bundles.BUNDLES)

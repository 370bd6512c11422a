"""The figures of the chapters on TPUs, the chip and the network, in the order of the pages."""

from scalingbook_book.chapters.tpus.figures import array, chip, growth, levels, links, pods, routes, stream

FIGURES = (
    chip.cycle,
    chip.chip,
    array.systolic,
    array.fill,
    array.padding,
    stream.stream,
    stream.buffers,
    growth.growth,
    links.rates,
    links.ring,
    links.slices,
    pods.cubes,
    pods.twist,
    routes.route,
    routes.hosts,
    levels.wait,
    levels.ladder,
    levels.chain,
)

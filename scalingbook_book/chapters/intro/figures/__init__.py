"""The figures of the introduction, in the order of its pages."""

from scalingbook_book.chapters.intro.figures import notation, regimes, resources, ring, wall, ways, worth

FIGURES = (
    wall.wall,
    ring.receives,
    ring.order,
    regimes.regimes,
    resources.resources,
    ways.ways,
    worth.worth,
    notation.letters,
    notation.links,
    notation.written,
)

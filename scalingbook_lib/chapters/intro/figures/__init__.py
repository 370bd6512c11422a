"""What is drawn in the introduction? Its figures, in its order."""

from scalingbook_lib.chapters.intro.figures import notation, regimes, resources, ring, wall, ways, worth

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

"""What is an explorer made of? One import for all of it.

Controls, what a view shows, and the explorer itself; the chips, models and machines that controls offer; the
words of a verdict.
"""

from scalingbook_lib.reader.explorers import layouts, scales
from scalingbook_lib.reader.explorers.controls import Choice, Notation, Slider, Steps, Switch
from scalingbook_lib.reader.explorers.explorer import Explorer
from scalingbook_lib.reader.explorers.view import (
    Band,
    Bars,
    Cell,
    Chart,
    Curve,
    Grid,
    Link,
    Mark,
    Network,
    Node,
    Panel,
    Points,
    Readout,
    RefLine,
    Regions,
    Scale,
    Series,
    Span,
    Timeline,
    View,
)
from scalingbook_lib.reader.offered.chips import CHIPS, TORI, WITH_TORUS, WITH_VMEM
from scalingbook_lib.reader.offered.gpus import CLUSTERS, DOMAINS, RACKS, cluster, joined
from scalingbook_lib.reader.offered.machines import machine, torus
from scalingbook_lib.reader.offered.models import MODELS
from scalingbook_lib.reader.offered.serving import (
    PRICES,
    SERVING_MACHINES,
    SERVING_MODELS,
    TYPES,
    refused,
    spread,
    stored,
)
from scalingbook_lib.reader.offered.training import TRAINING_MACHINES, divisors, term, word
from scalingbook_lib.reader.words import counts, lines, listed, several, three

__all__ = [
    "CHIPS",
    "CLUSTERS",
    "DOMAINS",
    "MODELS",
    "PRICES",
    "RACKS",
    "SERVING_MACHINES",
    "SERVING_MODELS",
    "TORI",
    "TRAINING_MACHINES",
    "TYPES",
    "WITH_TORUS",
    "WITH_VMEM",
    "Band",
    "Bars",
    "Cell",
    "Chart",
    "Choice",
    "Curve",
    "Explorer",
    "Grid",
    "Link",
    "Mark",
    "Network",
    "Node",
    "Notation",
    "Panel",
    "Points",
    "Readout",
    "RefLine",
    "Regions",
    "Scale",
    "Series",
    "Slider",
    "Span",
    "Steps",
    "Switch",
    "Timeline",
    "View",
    "cluster",
    "counts",
    "divisors",
    "joined",
    "layouts",
    "lines",
    "listed",
    "machine",
    "refused",
    "scales",
    "several",
    "spread",
    "stored",
    "term",
    "three",
    "torus",
    "word",
]

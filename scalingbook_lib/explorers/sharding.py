"""What does a sharded array cost? The explorers of the sharding chapter, in its order."""

from scalingbook_lib.explorers.sharding_latency import LATENCY
from scalingbook_lib.explorers.sharding_painter import PAINTER
from scalingbook_lib.explorers.sharding_player import PLAYER
from scalingbook_lib.explorers.sharding_torus import TORUS

EXPLORERS = (PAINTER, PLAYER, LATENCY, TORUS)

"""What does a sharded array cost? The explorers of the sharding chapter, in its order."""

from scalingbook_lib.explorers.sharding_latency import LATENCY
from scalingbook_lib.explorers.sharding_painter import PAINTER
from scalingbook_lib.explorers.sharding_player import PLAYER

EXPLORERS = (PAINTER, PLAYER, LATENCY)

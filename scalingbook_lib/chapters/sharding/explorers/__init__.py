"""What does a sharded array cost? The explorers of the sharding chapter, in its order."""

from scalingbook_lib.chapters.sharding.explorers.cases import CASE_SOLVER
from scalingbook_lib.chapters.sharding.explorers.latency import LATENCY
from scalingbook_lib.chapters.sharding.explorers.overlap import OVERLAP
from scalingbook_lib.chapters.sharding.explorers.painter import PAINTER
from scalingbook_lib.chapters.sharding.explorers.player import PLAYER
from scalingbook_lib.chapters.sharding.explorers.reshard import RESHARD
from scalingbook_lib.chapters.sharding.explorers.strategies import STRATEGIES
from scalingbook_lib.chapters.sharding.explorers.torus import TORUS
from scalingbook_lib.chapters.sharding.explorers.transpose import TRANSPOSE

EXPLORERS = (PAINTER, PLAYER, LATENCY, CASE_SOLVER, TORUS, RESHARD, TRANSPOSE, STRATEGIES, OVERLAP)

"""What does a sharded array cost? The explorers of the sharding chapter, in its order."""

from scalingbook_lib.explorers.sharding_cases import CASE_SOLVER
from scalingbook_lib.explorers.sharding_latency import LATENCY
from scalingbook_lib.explorers.sharding_overlap import OVERLAP
from scalingbook_lib.explorers.sharding_painter import PAINTER
from scalingbook_lib.explorers.sharding_player import PLAYER
from scalingbook_lib.explorers.sharding_reshard import RESHARD
from scalingbook_lib.explorers.sharding_strategies import STRATEGIES
from scalingbook_lib.explorers.sharding_torus import TORUS
from scalingbook_lib.explorers.sharding_transpose import TRANSPOSE

EXPLORERS = (PAINTER, PLAYER, LATENCY, CASE_SOLVER, TORUS, RESHARD, TRANSPOSE, STRATEGIES, OVERLAP)

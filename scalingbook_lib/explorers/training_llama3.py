"""How is LLaMA 3 trained on a pod? The explorers of the chapter that plans it."""

from scalingbook_lib.explorers.training_llama3_board import BOARD
from scalingbook_lib.explorers.training_llama3_cost import COST
from scalingbook_lib.explorers.training_llama3_memory import MEMORY
from scalingbook_lib.explorers.training_llama3_planner import PLANNER
from scalingbook_lib.explorers.training_llama3_regimes import REGIMES_MAP

EXPLORERS = (COST, MEMORY, BOARD, PLANNER, REGIMES_MAP)

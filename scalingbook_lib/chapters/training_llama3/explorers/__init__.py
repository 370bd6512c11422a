"""How is LLaMA 3 trained on a pod? The explorers of the chapter that plans it."""

from scalingbook_lib.chapters.training_llama3.explorers.board import BOARD
from scalingbook_lib.chapters.training_llama3.explorers.cost import COST
from scalingbook_lib.chapters.training_llama3.explorers.memory import MEMORY
from scalingbook_lib.chapters.training_llama3.explorers.planner import PLANNER
from scalingbook_lib.chapters.training_llama3.explorers.regimes import REGIMES_MAP

EXPLORERS = (COST, MEMORY, BOARD, PLANNER, REGIMES_MAP)

"""How is Llama 3 trained on a pod? The explorers of the chapter that plans it."""

from scalingbook_book.chapters.training_llama3.explorers import board, cost, memory, planner, regimes

EXPLORERS = (cost.COST, memory.MEMORY, board.BOARD, planner.PLANNER, regimes.REGIMES_MAP)

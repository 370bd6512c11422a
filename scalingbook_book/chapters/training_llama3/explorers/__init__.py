"""The explorers of the chapter on training Llama 3 on a pod."""

from scalingbook_book.chapters.training_llama3.explorers import board, cost, memory, planner, regimes

EXPLORERS = (cost.COST, memory.MEMORY, board.BOARD, planner.PLANNER, regimes.REGIMES_MAP)

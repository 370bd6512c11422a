"""How is LLaMA 3 served? The explorers of the chapter that does it."""

from scalingbook_lib.explorers.inference_llama3_breakdown import BREAKDOWN
from scalingbook_lib.explorers.inference_llama3_pareto import PARETO

EXPLORERS = (BREAKDOWN, PARETO)

"""How is LLaMA 3 served? The explorers of the chapter that does it."""

from scalingbook_lib.explorers.inference_llama3_breakdown import BREAKDOWN
from scalingbook_lib.explorers.inference_llama3_fit import FIT
from scalingbook_lib.explorers.inference_llama3_load import LOAD
from scalingbook_lib.explorers.inference_llama3_pareto import PARETO
from scalingbook_lib.explorers.inference_llama3_pools import POOLS
from scalingbook_lib.explorers.inference_llama3_price import PRICE

EXPLORERS = (PRICE, FIT, BREAKDOWN, PARETO, POOLS, LOAD)

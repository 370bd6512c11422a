"""How is LLaMA 3 served? The explorers of the chapter that does it."""

from scalingbook_lib.chapters.inference_llama3.explorers.breakdown import BREAKDOWN
from scalingbook_lib.chapters.inference_llama3.explorers.fit import FIT
from scalingbook_lib.chapters.inference_llama3.explorers.load import LOAD
from scalingbook_lib.chapters.inference_llama3.explorers.pareto import PARETO
from scalingbook_lib.chapters.inference_llama3.explorers.pools import POOLS
from scalingbook_lib.chapters.inference_llama3.explorers.price import PRICE

EXPLORERS = (PRICE, FIT, BREAKDOWN, PARETO, POOLS, LOAD)

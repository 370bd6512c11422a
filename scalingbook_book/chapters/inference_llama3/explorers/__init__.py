"""The explorers of the chapter on serving Llama 3."""

from scalingbook_book.chapters.inference_llama3.explorers import breakdown, fit, load, pareto, pools, price

EXPLORERS = (price.PRICE, fit.FIT, breakdown.BREAKDOWN, pareto.PARETO, pools.POOLS, load.LOAD)

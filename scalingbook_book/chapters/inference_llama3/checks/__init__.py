"""Checks of the chapter on serving Llama 3, from the bytes of a token to the bill."""

from scalingbook_book.chapters.inference_llama3.checks.pareto import FRONTS
from scalingbook_book.chapters.inference_llama3.checks.requests import REQUESTS
from scalingbook_book.chapters.inference_llama3.checks.searches import SEARCHES
from scalingbook_book.chapters.inference_llama3.checks.sizes import SIZES
from scalingbook_book.chapters.inference_llama3.checks.steps import STEPS

CHECKS = SIZES + STEPS + REQUESTS + SEARCHES + FRONTS

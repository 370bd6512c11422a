"""Can a reader plan a service, from a token's bytes to the bill? Checks of the chapter on serving."""

from scalingbook_lib.checks.inference_llama3.fronts import FRONTS
from scalingbook_lib.checks.inference_llama3.requests import REQUESTS
from scalingbook_lib.checks.inference_llama3.searches import SEARCHES
from scalingbook_lib.checks.inference_llama3.sizes import SIZES
from scalingbook_lib.checks.inference_llama3.steps import STEPS

CHECKS = SIZES + STEPS + REQUESTS + SEARCHES + FRONTS

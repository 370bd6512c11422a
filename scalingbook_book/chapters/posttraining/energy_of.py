"""The run whose energy the chapter computes."""

from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS

LARGEST = next(run for run in WHOLE_RUNS if run.name == "Llama-3.1-405B")

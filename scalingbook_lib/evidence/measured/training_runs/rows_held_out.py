"""Published runs that no table of efficiencies has seen, so that a prediction of them proves something.

Chapter: Training LLaMA 3.
"""

from scalingbook_lib.evidence.measured.training_runs.table import Family

FAMILIES = (
    Family(
        name="llama3-405b",
        convention="half",
        url="https://arxiv.org/abs/2407.21783",
        source="The Llama 3 Herd of Models, section 3.3.2 and table 4, in public full-text copies",
        note="Four chunks, and how FLOPs were counted, are assumed. Gradients are summed over microbatches "
        "before they are reduced: the traffic of ZeRO-1.",
        rows="""
01 LLaMA-3_405B H100 8192  bf16 8192   2048 1 fsdp64.tp8.pp16.v4.zero1      none tf=430 mfu=0.43
01 LLaMA-3_405B H100 16384 bf16 8192   2048 1 fsdp128.tp8.pp16.v4.zero1     none tf=400 mfu=0.41
02 LLaMA-3_405B H100 16384 bf16 131072 128  1 fsdp8.cp16.tp8.pp16.v4.zero1  none tf=380 mfu=0.38
""",
    ),
)
"""Meta's 405B model at three stages of its training."""

"""Roofline times of one operation on one chip, and the resource that bounds them.

Compute takes FLOPs over FLOP/s and moving the operands takes bytes over bytes/s. With perfect overlap the
time is the longer of the two, without overlap it is their sum. Every rate is a documented peak. Chapter:
Rooflines.

>>> from scalingbook_lib.machines import chips
>>> print(matmul(64, 8192, 8192, chips.V5E))
memory-bound: math 43.6 µs, memory 166 µs, so at best 26% of the peak
"""

from scalingbook_lib.roofline.stages import (
    ChunkTurn,
    CopyPipeline,
    Ladder,
    bytes_in_flight,
    ladder,
    levels,
    pipeline,
)
from scalingbook_lib.roofline.thresholds import (
    RuleOfThumb,
    TiledMatmul,
    attainable,
    break_even_contraction,
    rule_of_thumb_batch,
    split_matmul,
    square_tile,
    tiled_matmul,
)
from scalingbook_lib.roofline.time import (
    Roofline,
    batched_matvec,
    dot,
    elementwise,
    matmul,
    matvec,
    operation,
    overlapped,
    pipelined,
    reduction,
    softmax,
)

__all__ = [
    "ChunkTurn",
    "CopyPipeline",
    "Ladder",
    "Roofline",
    "RuleOfThumb",
    "TiledMatmul",
    "attainable",
    "batched_matvec",
    "break_even_contraction",
    "bytes_in_flight",
    "dot",
    "elementwise",
    "ladder",
    "levels",
    "matmul",
    "matvec",
    "operation",
    "overlapped",
    "pipeline",
    "pipelined",
    "reduction",
    "rule_of_thumb_batch",
    "softmax",
    "split_matmul",
    "square_tile",
    "tiled_matmul",
]

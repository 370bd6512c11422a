"""Reads XLA's calls of libraries on GPUs: the attention of cuDNN, and which calls only compute.

A call of cuBLAS names the contracted dimensions as a dot does, so `cost` counts it. A call of cuDNN's
attention notes the shape of the scores, which it never writes to memory.
"""

import math
import re

from scalingbook_lib.hlo.module import Computation, Instruction

_SCORES = re.compile(r'"intermediate_tensor_shape": ?\{.*?"dimensions": ?\[([\d", ]+)\]')
_MASK = re.compile(r'"mask_type": ?"(\w+)"')
LIBRARIES = ("__cublas$", "__cudnn$", "__cub$", "__cusolver", "cusolver", "cufft", "__triton_gemm")
"""What the targets of calls begin with that compute on one GPU, and move nothing between GPUs."""

MATMULS_FORWARD = 2  # scores, and their product with the values
MATMULS_BACKWARD = 5  # the scores again, and the gradients of scores, queries, keys and values


def is_attention(i: Instruction) -> bool:
    """Whether an instruction calls cuDNN's fused attention."""
    return i.opcode == "custom-call" and i.quoted("custom_call_target").startswith("__cudnn$fmha")


def has_scores(i: Instruction) -> bool:
    """Whether a call of cuDNN's attention notes the shape of its scores."""
    return _SCORES.search(i.attributes) is not None


def attention_flops(computation: Computation, i: Instruction) -> int:
    """The FLOPs of cuDNN's attention: of every matmul, as if no pair of positions were masked; 0 if unknown.

    The backward pass of flash attention computes the scores a second time.
    """
    found = _SCORES.search(i.attributes)
    operands = computation.operands(i)
    if not found or not operands or not operands[0].shapes or not operands[0].shapes[0].dims:
        return 0
    scores = math.prod(map(int, re.findall(r"\d+", found[1])))
    head = operands[0].shapes[0].dims[-1]
    backward = "Backward" in i.quoted("custom_call_target")
    return (MATMULS_BACKWARD if backward else MATMULS_FORWARD) * 2 * scores * head


def mask(i: Instruction) -> str:
    """The mask of cuDNN's attention, as in 'CAUSAL'; "" if it has none."""
    found = _MASK.search(i.attributes)
    return "" if found is None or found[1] == "NO_MASK" else found[1]


def only_computes(target: str) -> bool:
    """Whether a call of this target moves nothing between GPUs."""
    return target.startswith(LIBRARIES)

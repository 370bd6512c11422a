"""Checks of the first exercises: what a chip holds, and when sharding it pays."""

from functools import cache

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules, training
from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.sharded_matmul import solve
from scalingbook_lib.training import Plan

_13B = models.find("Llama 2 13B")
_POD = Slice.of(chips.V5P, "16x20x28")
_GEMMA_F = 24_576
_MLP = _13B.L * _13B.D * _13B.F  # parameters of one of its three matrices, all layers


@cache
def _owed() -> str:
    """The gradient of W_in before any collective: a sum over the tokens that a chip has."""
    product, cube = "In[D, B_X] · Tmp[B_X, F] -> W[D, F]", Rings(chips.V5P, X=4)
    found = solve(product, cube, {"B": 4096, "D": 1024, "F": 4096})
    return found.named("all-reduce W over X").local.c.canonical()


def _held(zero: int, optimizer: bool = True) -> float:
    memory = training.states(_13B.params, Plan(fsdp=32, zero=zero))
    return memory.state if optimizer else memory.state - memory["optimizer"]


def _pod_batch(axes: int = 3, links: float = 1.0) -> float:
    return _POD.chips * rules.data_parallel_tokens(chips.V5P, axes=axes, links=links)


def _tensor(F: float = _GEMMA_F, axes: int = 1, links: float = 1.0) -> float:
    return rules.tensor_parallel_degree(F, chips.V5P, axes=axes, links=links)


def _checkpoints(wide: float = 2 * _13B.F, tokens: float = 16e6) -> float:
    """One array of width D a layer, and `wide` more columns."""
    return rules.pooled(_13B, tokens, arrays=(_13B.D + wide) / _13B.D).checkpoints


STATE = (
    Check(
        key="training.weight-gradient",
        title="Sharding of a weight gradient",
        answer=_owed,
        kind="notation",
        difficulty=1,
        hints=(
            "The gradient of W_in is the matmul of two arrays that both have a dimension B. Which ones?",
            "B is the contracting dimension, and it is sharded over X. So what does each chip have at first?",
        ),
        mistakes=(
            Mistake(
                "W[D, F]",
                "That is the array after an AllReduce. Before it, each chip has seen only its own tokens.",
            ),
            Mistake("W[D_X, F]", "That is the array after a ReduceScatter. What does a chip have before it?"),
            Mistake(
                "W[F, D]{U_X}",
                "That is the shape of W_out, whose gradient comes from Tmp and the gradient of Out.",
            ),
            Mistake(
                "W[D, F_X]",
                "F is not sharded: no operand of the matmul has X there.",
            ),
        ),
        right="Right: In, transposed, times the gradient of Tmp. The sum over X is still pending.",
    ),
    Check(
        key="training.count-parameters",
        title="Parameters of Llama 2 13B",
        answer=lambda: float(arithmetic.params(_13B).total),
        rel_tol=0.003,
        difficulty=1,
        hints=(
            "Each layer has three matrices of D × F and four of D × N H.",
            "The vocabulary has one matrix at the start and another at the end.",
        ),
        mistakes=(
            Mistake(
                lambda: _13B.params + _MLP,
                "The MLP has one gate, so three matrices in total.",
            ),
            Mistake(lambda: _13B.params - _MLP, "The MLP is gated, so it has three matrices."),
            Mistake(
                lambda: _13B.params - _13B.V * _13B.D,
                "Embedding and unembedding are two matrices here.",
            ),
            Mistake(
                lambda: 8.5e9 + 4.2e9 + 0.39e9,
                "That has 0.39 billion for the vocabulary. Compute 2 V D again.",
            ),
            Mistake(
                lambda: _13B.params - 2 * _13B.V * _13B.D,
                "The two matrices of the vocabulary are missing.",
            ),
        ),
        right="Right. Two thirds of them are in the MLPs.",
    ),
    Check(
        key="training.zero2-state",
        title="Memory per chip with ZeRO-2",
        answer=lambda: _held(2),
        unit="B",
        rel_tol=0.01,
        difficulty=1,
        hints=(
            "ZeRO-2 shards the optimizer state and the gradients, but not the weights.",
            "Two bytes per parameter are replicated, and the other 14 are sharded over 32 chips.",
        ),
        mistakes=(
            Mistake(
                lambda: _held(3),
                "That is stage 3. Stage 2 replicates the weights on all chips.",
                slip="wrong-option",
            ),
            Mistake(
                lambda: _held(1),
                "That is stage 1. Stage 2 shards the gradients as well.",
                slip="wrong-option",
            ),
            Mistake(
                lambda: _held(0),
                "That is plain data parallelism, where nothing is sharded.",
                slip="total-for-one",
            ),
            Mistake(
                lambda: _held(2, optimizer=False),
                "The optimizer state is missing.",
            ),
            Mistake(
                lambda: _held(2) - 4 * _13B.params / 32,
                "The optimizer state takes 12 bytes per parameter: two moments and a master copy "
                "of the weights, in fp32.",
            ),
        ),
        right="Right: most of it is weights now.",
    ),
    Check(
        key="training.data-parallel-batch",
        title="Data parallelism on a whole pod",
        answer=_pod_batch,
        unit="tokens",
        rel_tol=0.01,
        chips=_POD.chips,
        difficulty=1,
        hints=(
            "r = C/W is the number of FLOPs that a chip performs while one byte arrives over "
            "both links of one axis.",
            "Over three axes, each chip needs r/3 tokens. How many chips are there?",
        ),
        mistakes=(
            Mistake(3, "That is with one axis. Data parallelism over the whole pod uses all three."),
            Mistake(1.5, "That is with two of the three axes."),
            Mistake(
                lambda: _pod_batch(links=0.9),
                "That is with links at 90% of their documented rate.",
            ),
            Mistake(2, "An AllReduce uses both links of an axis, so 200 GB/s per axis."),
        ),
        right="Right. Many models cannot make good use of such a large batch.",
    ),
    Check(
        key="training.tensor-limit",
        title="Maximum tensor-parallel degree",
        answer=_tensor,
        rel_tol=0.01,
        difficulty=1,
        hints=(
            "Tensor parallelism moves activations, so the batch cancels.",
            "The condition is Y < F/r for one axis of the torus.",
        ),
        mistakes=(
            Mistake(
                lambda: _tensor(2 * _GEMMA_F),
                "That counts both halves of the gate in F. One matrix is 24,576 wide.",
                slip="factor-two",
            ),
            Mistake(
                lambda: 49_152 / 2550,
                "That counts both halves of the gate in F, and has links at 90% of their documented rate.",
            ),
            Mistake(lambda: _tensor(links=0.9), "That is with links at 90% of their documented rate."),
            Mistake(
                lambda: _tensor(3072),
                "That is with D. Tensor parallelism shards F here.",
                slip="wrong-dimension",
            ),
            Mistake(
                lambda: _tensor(axes=3), "That is for tensor parallelism over three axes. Here it uses one."
            ),
            Mistake(0.5, "A gather uses both links of the axis, so 200 GB/s.", slip="one-direction"),
        ),
        right="Right: TP 8, if the degree has to be a power of two.",
    ),
    Check(
        key="training.kept-activations",
        title="Activations saved for the backward pass",
        answer=_checkpoints,
        unit="B",
        rel_tol=0.01,
        difficulty=1,
        hints=(
            "In each layer, one vector of D elements and two of F elements are saved per token.",
            "Each element takes two bytes. Then multiply by all layers and all tokens of the batch.",
        ),
        mistakes=(
            Mistake(
                lambda: _checkpoints(2 * _13B.D),
                "That assumes that all three arrays are D wide. Two of them are F wide.",
            ),
            Mistake(
                lambda: _checkpoints(_13B.F),
                "Two arrays are F wide, not one.",
                slip="term-left-out",
            ),
            Mistake(lambda: _checkpoints() / _13B.L, "That is for one layer of 40.", slip="one-for-total"),
            Mistake(2, "An element in bf16 takes two bytes.", slip="wrong-dtype-size"),
            Mistake(lambda: _checkpoints(tokens=16e16), "The batch is 16 million tokens, 16e6."),
            Mistake(
                lambda: _checkpoints(0),
                "That is the D-wide array alone. Two more arrays are saved, which are F wide.",
                slip="term-left-out",
            ),
        ),
        right="Right: hundreds of times as much as the weights and the optimizer state.",
    ),
)

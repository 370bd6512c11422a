"""What does a chip hold, and from when on does it pay to share? The first exercises."""

from functools import cache

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules, training
from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.sharded_matmul import solve
from scalingbook_lib.training import Plan

_13B = models.find("LLaMA-2 13B")
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
        title="Which gradient is it?",
        answer=_owed,
        kind="notation",
        difficulty=1,
        hints=(
            "The gradient of W_in is a product of two arrays that have B in common. Which ones?",
            "B is the contracted dimension, and it is split over X. So what does each chip have at first?",
        ),
        mistakes=(
            Mistake("W[D, F]", "That is so after an AllReduce. Each chip has seen only its own tokens."),
            Mistake("W[D_X, F]", "That is so after a ReduceScatter. What is there before it?"),
            Mistake(
                "W[F, D]{U_X}",
                "That is the shape of W_out: its gradient comes from Tmp and the gradient of Out.",
            ),
            Mistake(
                "W[D, F_X]",
                "Nothing has split F: no array of the product has X there.",
            ),
        ),
        right="Right: In, transposed, times the gradient of Tmp, and a sum that is still owed.",
    ),
    Check(
        key="training.count-parameters",
        title="Thirteen billion",
        answer=lambda: float(arithmetic.params(_13B).total),
        rel_tol=0.003,
        difficulty=1,
        hints=(
            "Three matrices of D × F in each layer, and four of D × N H.",
            "The vocabulary has a matrix at the start and another one at the end.",
        ),
        mistakes=(
            Mistake(
                lambda: _13B.params + _MLP,
                "The MLP has one gate: three matrices in all.",
            ),
            Mistake(lambda: _13B.params - _MLP, "The MLP is gated, and has three matrices."),
            Mistake(
                lambda: _13B.params - _13B.V * _13B.D,
                "Embedding and unembedding are two matrices here.",
            ),
            Mistake(
                lambda: 8.5e9 + 4.2e9 + 0.39e9,
                "That has 0.39 for the vocabulary. Work out 2 V D once more.",
            ),
            Mistake(
                lambda: _13B.params - 2 * _13B.V * _13B.D,
                "The vocabulary's two matrices are missing.",
            ),
        ),
        right="Right: two thirds of it in the MLPs.",
    ),
    Check(
        key="training.zero2-state",
        title="Stage by stage",
        answer=lambda: _held(2),
        unit="B",
        rel_tol=0.01,
        difficulty=1,
        hints=(
            "Stage 2 splits the optimizer's state and the gradients, and not the weights.",
            "Two bytes a parameter stay whole; the other 14 are shared by 32 chips.",
        ),
        mistakes=(
            Mistake(
                lambda: _held(3),
                "That is stage 3. Stage 2 leaves the weights whole on each chip.",
                slip="wrong-option",
            ),
            Mistake(
                lambda: _held(1),
                "That is stage 1. Stage 2 splits the gradients as well.",
                slip="wrong-option",
            ),
            Mistake(
                lambda: _held(0), "That is plain data parallelism: nothing is split.", slip="total-for-one"
            ),
            Mistake(
                lambda: _held(2, optimizer=False),
                "The optimizer's share is missing.",
            ),
            Mistake(
                lambda: _held(2) - 4 * _13B.params / 32,
                "The optimizer has 12 bytes a parameter: two moments and a copy of the weights, in fp32.",
            ),
        ),
        right="Right: nearly all of it is weights now.",
    ),
    Check(
        key="training.data-parallel-batch",
        title="A pod of data parallelism",
        answer=_pod_batch,
        unit="tokens",
        rel_tol=0.01,
        chips=_POD.chips,
        difficulty=1,
        hints=(
            "r = C/W: the FLOPs that a chip does while one byte arrives over one axis, both of its links.",
            "Over three axes a chip needs r/3 tokens. How many chips are there?",
        ),
        mistakes=(
            Mistake(3, "That is with one axis. Data parallelism over the whole pod has all three."),
            Mistake(1.5, "That is with two axes of the three."),
            Mistake(
                lambda: _pod_batch(links=0.9),
                "That is for links at 90% of the documented rate.",
            ),
            Mistake(2, "An AllReduce sends on both links of an axis: 200 GB/s for each axis."),
        ),
        right="Right: many models cannot make good use of so large a batch.",
    ),
    Check(
        key="training.tensor-limit",
        title="How far can F be cut?",
        answer=_tensor,
        rel_tol=0.01,
        difficulty=1,
        hints=(
            "Tensor parallelism moves activations; the batch cancels.",
            "Y < F/r for one axis of the torus.",
        ),
        mistakes=(
            Mistake(
                lambda: _tensor(2 * _GEMMA_F),
                "That counts both halves of the gate in F. One matrix is 24,576 wide.",
                slip="factor-two",
            ),
            Mistake(
                lambda: 49_152 / 2550,
                "There F counts both halves of the gate, and links are at 90%.",
            ),
            Mistake(lambda: _tensor(links=0.9), "That is with links at 90% of their documented rate."),
            Mistake(
                lambda: _tensor(3072),
                "That is with D. Tensor parallelism here cuts F.",
                slip="wrong-dimension",
            ),
            Mistake(
                lambda: _tensor(axes=3), "That is for tensor parallelism over three axes. Here it has one."
            ),
            Mistake(0.5, "A gather uses both links of the axis: 200 GB/s.", slip="one-direction"),
        ),
        right="Right: so 8 ways, of the powers of two.",
    ),
    Check(
        key="training.kept-activations",
        title="What is kept for the backward pass",
        answer=_checkpoints,
        unit="B",
        rel_tol=0.01,
        difficulty=1,
        hints=(
            "In one layer a token leaves one vector of D elements, and two of F.",
            "Two bytes each; then all layers, and all tokens of the batch.",
        ),
        mistakes=(
            Mistake(
                lambda: _checkpoints(2 * _13B.D),
                "That takes all three arrays to be D wide. Two of them are F wide.",
            ),
            Mistake(
                lambda: _checkpoints(_13B.F),
                "Two arrays are F wide: input and gate of the product.",
                slip="term-left-out",
            ),
            Mistake(lambda: _checkpoints() / _13B.L, "That is one layer of 40.", slip="one-for-total"),
            Mistake(2, "bf16 takes two bytes an element.", slip="wrong-dtype-size"),
            Mistake(lambda: _checkpoints(tokens=16e16), "The batch is 16 million tokens, 16e6."),
            Mistake(
                lambda: _checkpoints(0),
                "That is the D-wide array alone. Two more are kept, F wide.",
                slip="term-left-out",
            ),
        ),
        right="Right: hundreds of times what weights and optimizer take.",
    ),
)

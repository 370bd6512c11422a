"""Checks of the exercises on training: crossovers, the rule of 6, experts, MFU, activations, adapters."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import FP8, INT8

_LLAMA_70B, _MIXTRAL = models.find("Llama 3 70B"), models.find("Mixtral 8x22B")
_GEMMA = models.find("Gemma-2 2B")
_SQUARE = models.Transformer(name="square", D=8192, F=32768, L=64, N=64, K=64, H=128, V=32000)
_RUN_FLOPS, _RUN_S = 6 * 37e9 * 14.8e12, 2.788e6 * 3600  # DeepSeek-V3: active parameters, tokens, GPU time


def _mlp_crossover() -> float:
    """Tokens at which causal attention, T/2 keys per token on average, takes as many FLOPs as the MLP."""
    one = arithmetic.flops(_LLAMA_70B, 1, 1)
    return 2 * one["mlp"] / one.attention


def _over_rule(*, causal: bool = True) -> float:
    run = arithmetic.training_flops(_LLAMA_70B, 15e12, 8192, causal=causal)
    return run.total / run.six_nd


def _attention_over_rule() -> float:
    run = arithmetic.training_flops(_LLAMA_70B, 15e12, 8192, causal=True)
    return run.exact.attention / run.six_nd


def _untied(*, tied: bool = False) -> float:
    run = arithmetic.training_flops(replace(_GEMMA, tied=tied), 1e12, 8192)
    return run.six_nd / run.exact.weights


def _mfu(peak: chips.Chip | float, flops: float = _RUN_FLOPS) -> float:
    return arithmetic.mfu(flops, _RUN_S, peak, FP8).share


def _kept(policy: arithmetic.Policy = "dots_no_batch") -> arithmetic.Activations:
    return arithmetic.activations(_SQUARE, 1000, 4000, policy)


def _again(policy: arithmetic.Policy = "dots_no_batch", *, causal: bool = False) -> float:
    """FLOPs that the backward pass of the layers recomputes, as a fraction of their forward pass."""
    kept = arithmetic.activations(_SQUARE, 1, 4096, policy, causal=causal)
    forward = arithmetic.flops(_SQUARE, 1, 4096, causal=causal)
    return kept.extra_flops / (forward.total - forward["unembedding"])


def _adapter(r: int = 64, *, width: int = 8192, tokens: int = 4096) -> float:
    """Training FLOPs of a frozen matrix with an adapter, over those of training the matrix."""
    full = arithmetic.einsum("BD,DF->BF", B=tokens, D=width, F=width)
    down = arithmetic.einsum("BD,DR->BR", B=tokens, D=width, R=r)
    up = arithmetic.einsum("BR,RF->BF", B=tokens, R=r, F=width)
    frozen = full.flops + full.backward[0].flops  # no gradient of the frozen matrix
    return (frozen + down.training_flops + up.training_flops) / full.training_flops


COSTS = (
    Check(
        key="transformers.scores-and-mlp",
        title="When attention costs as much as the MLP",
        answer=_mlp_crossover,
        unit="tokens",
        difficulty=2,
        hints=(
            "In the forward pass, a gated MLP takes 6DF FLOPs per token.",
            "A causal kernel computes half of all pairs: 2TNH FLOPs per token.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "That counts every pair. This kernel skips the masked half.",
                slip="full-for-causal",
            ),
            Mistake(lambda: 12 * 8192, "That assumes F = 4D. This model's MLP is narrower."),
            Mistake(lambda: 6 * 8192, "That assumes F = 4D, and that every pair is computed."),
            Mistake(lambda: 8 * 8192, "That is the rule for a whole layer with F = 4D, without a mask."),
            Mistake(
                lambda: arithmetic.crossover(_LLAMA_70B, causal=True),
                "That is where attention costs as much as all weights of the layer, including its "
                "projections.",
                slip="term-added",
            ),
        ),
        right="Right: 3DF/(NH). Far below that length, most FLOPs of a large model are in its MLPs.",
    ),
    Check(
        key="transformers.beyond-6pt",
        title="What 6 · parameters · tokens leaves out",
        answer=_over_rule,
        rel_tol=0.005,
        difficulty=2,
        hints=(
            "Per token: 6 FLOPs for each parameter that multiplies it, plus 6LTNH for attention.",
            "The embedding is looked up and takes no FLOPs, but the rule counts it.",
        ),
        mistakes=(
            Mistake(lambda: _over_rule(causal=False), "That counts the pairs that the causal mask excludes."),
            Mistake(
                lambda: 1 + _attention_over_rule(),
                "You included attention, but 6P also counts the embedding, which is only looked up.",
            ),
            Mistake(
                lambda: _over_rule() - 2 / 3 * _attention_over_rule(),
                "Dot-product attention has a backward pass too.",
            ),
            Mistake(
                lambda: _over_rule() - _attention_over_rule(),
                "That leaves attention out, as the rule itself does.",
            ),
        ),
        right="Right. The rule errs in both directions, and at this length the missing attention is larger.",
    ),
    Check(
        key="transformers.tied-embedding",
        title="Tied embeddings and the rule of 6",
        answer=_untied,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "How many parameters does the second matrix have, and how many of them multiply a token?",
            "The unembedding is a matmul in both models. The lookup is not a matmul in either.",
        ),
        mistakes=(
            Mistake(lambda: _untied(tied=True), "That is for the tied model, for which the rule holds."),
            Mistake(lambda: _untied() - 1, "That is the excess. Give the factor."),
            Mistake(lambda: 1 / _untied(), "That is the inverse: the rule counts more than the model does."),
        ),
        right="Right. For small models, say whether P includes a matrix that is only looked up.",
    ),
    Check(
        key="transformers.active-parameters",
        title="Active parameters of Mixtral 8x22B",
        answer=lambda: _MIXTRAL.active_params,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Which parts exist eight times, and which exist only once?",
            "Only the MLPs exist eight times. A token is routed to two of them in each layer.",
        ),
        mistakes=(
            Mistake(
                lambda: _MIXTRAL.params, "That is what has to be stored, not what is active for one token."
            ),
            Mistake(
                lambda: _MIXTRAL.params / 4,
                "Only the experts are routed. Attention and embeddings are active for every token.",
            ),
            Mistake(
                lambda: 44e9,
                "Two models of 22 billion parameters would have two sets of attention weights. Here, "
                "the experts share one set.",
            ),
            Mistake(
                lambda: 176e9, "Multiplying 8 by 22 billion also counts the shared parameters eight times."
            ),
            Mistake(
                lambda: _MIXTRAL.active_params - _MIXTRAL.by_part["experts"] / 8,
                "That is for one expert per layer. A token is routed to two.",
            ),
        ),
        right="Right: more than a quarter of the total, because attention and embeddings are always active.",
    ),
    Check(
        key="transformers.deepseek-mfu",
        title="MFU of DeepSeek-V3",
        answer=lambda: _mfu(chips.H100),
        difficulty=2,
        hints=(
            "Divide 6 · active parameters · tokens by the FLOPs that the GPUs could have "
            "performed in these hours.",
            "An hour has 3,600 seconds. The peak is for dense fp8 on the SXM module.",
        ),
        mistakes=(
            Mistake(
                lambda: _mfu(1.513e15),
                "That uses the peak of the PCIe card. These GPUs have NVLink, so they are SXM modules.",
            ),
            Mistake(
                2,
                "That is relative to the bf16 peak. The question asks for fp8, whose peak is twice as high.",
            ),
            Mistake(0.5, "That uses the peak with sparsity."),
            Mistake(671 / 37, "A token is multiplied by the active parameters, not by all of them."),
            Mistake(
                1 / 3, "Two FLOPs per parameter are the forward pass. Training takes three times as many."
            ),
        ),
        right=(
            "Right. Against the bf16 peak it would be twice as high, so always say which peak you divide by."
        ),
    ),
    Check(
        key="transformers.kept-activations",
        title="Activation memory if weight matmuls are kept",
        answer=lambda: _kept().nbytes,
        unit="B",
        difficulty=2,
        hints=(
            "How wide is each of the seven arrays? Write each as a multiple of D.",
            "Two of the seven are four times as wide as the others.",
        ),
        mistakes=(
            Mistake(
                7 / 13, "That counts arrays. Two of the seven have width F, not D.", slip="wrong-dimension"
            ),
            Mistake(20 / 13, "There are not twenty arrays, only these seven, and two of them have width F."),
            Mistake(
                lambda: _kept("full").nbytes,
                "That keeps only the inputs of the layers.",
                slip="term-left-out",
            ),
            Mistake(1 / 64, "That is for a single layer.", slip="one-for-total"),
            Mistake(2, "An element of bf16 takes two bytes.", slip="wrong-dtype-size"),
        ),
        right="Right. This does not include the scores, which would add a T × T array per head.",
    ),
    Check(
        key="transformers.recomputed-share",
        title="FLOPs of recomputation",
        answer=_again,
        difficulty=2,
        hints=(
            "Which matmuls have no saved output? Those that multiply two activations.",
            "Divide 4BT²NH by 2BT(3DF + 4D²) + 4BT²NH.",
        ),
        mistakes=(
            Mistake(1 / 3, "That is a fraction of the training FLOPs. The forward pass is a third of them."),
            Mistake(
                lambda: _again() / (1 - _again()), "The forward pass includes dot-product attention as well."
            ),
            Mistake(lambda: _again(causal=True), "That skips masked pairs. Here, every pair is computed."),
            Mistake(lambda: _again("full"), "That recomputes nearly the whole layer."),
            Mistake(0.5, "Both scores and weighted values are recomputed, which is two matmuls."),
        ),
        right="Right. The cost is small at this length and grows with the sequence length.",
    ),
    Check(
        key="transformers.adapter-flops",
        title="Training FLOPs of a LoRA adapter",
        answer=_adapter,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Training a matrix takes three matmuls. Which of them does a frozen matrix not need?",
            "The frozen matrix takes 4BDF. The two matrices of the adapter take 6Br(D + F).",
        ),
        mistakes=(
            Mistake(lambda: _adapter() - 1 / 3, "Gradients still have to pass through the frozen matrix."),
            Mistake(lambda: _adapter() + 1 / 3, "A frozen matrix needs no gradient of its own."),
            Mistake(lambda: 2 / 3, "That leaves out the adapter itself."),
            Mistake(lambda: 1 / _adapter(), "That is the inverse: training the adapter is cheaper."),
        ),
        right="Right. An adapter saves the optimizer's memory, but only a third of the compute.",
    ),
    Check(
        key="transformers.expert-batch",
        title="Critical batch of 256 experts",
        answer=lambda: rules.critical_batch(chips.V5E, sparsity=256 / 8, weights=INT8).tokens,
        unit="tokens",
        difficulty=2,
        hints=(
            "How many tokens does a dense layer need, with one byte per weight and bf16 compute?",
            "All experts are read, but each token is multiplied by only k of them, so E/k times "
            "as many tokens are needed.",
        ),
        mistakes=(
            Mistake(1 / 32, "That is for a dense layer.", slip="factor-left-out"),
            Mistake(2, "That is for weights of two bytes.", slip="wrong-dtype-size"),
            Mistake(
                8,
                "A token is routed to eight experts, and each of them processes it.",
                slip="factor-left-out",
            ),
            Mistake(lambda: 256 / 8, "That is E/k, the factor by which it exceeds a dense layer."),
        ),
        right="Right. A mixture of experts is cheap per token, if there are enough tokens.",
    ),
)

"""What does training cost, and what does it keep? Crossovers, the rule of thumb, experts, activations."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import FP8, INT8

_LLAMA_70B, _MIXTRAL = models.find("LLaMA-3 70B"), models.find("Mixtral 8x22B")
_GEMMA = models.find("Gemma-2 2B")
_SQUARE = models.Transformer(name="square", D=8192, F=32768, L=64, N=64, K=64, H=128, V=32000)
_RUN_FLOPS, _RUN_S = 6 * 37e9 * 14.8e12, 2.788e6 * 3600  # DeepSeek-V3: active parameters, tokens, GPU time


def _mlp_crossover() -> float:
    """Causal: scores and weighted values cost what the MLP costs, each token meeting T/2 keys."""
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
    """What the backward pass of the layers does anew, as a share of their forward pass."""
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
        title="Attention against the MLP",
        answer=_mlp_crossover,
        unit="tokens",
        difficulty=2,
        hints=(
            "A gated MLP does 6DF FLOPs for each token, forward.",
            "A causal kernel computes half of the square: 2TNH for each token.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "That computes the whole square. This kernel skips the masked half.",
                slip="full-for-causal",
            ),
            Mistake(lambda: 12 * 8192, "That supposes F = 4D. This model's MLP is narrower."),
            Mistake(lambda: 6 * 8192, "That supposes F = 4D, and that the whole square is computed."),
            Mistake(lambda: 8 * 8192, "That is the rule for a whole layer with F = 4D, without a mask."),
            Mistake(
                lambda: arithmetic.crossover(_LLAMA_70B, causal=True),
                "That is where attention meets all weights of the layer, its projections too.",
                slip="term-added",
            ),
        ),
        right="Right: 3DF/(NH). Below some ten thousand tokens, a large model is mostly its MLPs.",
    ),
    Check(
        key="transformers.beyond-6pt",
        title="What six times P leaves out",
        answer=_over_rule,
        rel_tol=0.005,
        difficulty=2,
        hints=(
            "Work per token: 6 FLOPs for each weight that it is multiplied by, and 6LTNH for attention.",
            "The embedding is looked up, not multiplied by: the rule counts it all the same.",
        ),
        mistakes=(
            Mistake(lambda: _over_rule(causal=False), "That computes what the mask throws away."),
            Mistake(
                lambda: 1 + _attention_over_rule(),
                "Attention is there. The embedding is no product, and 6P counts it as one.",
            ),
            Mistake(
                lambda: _over_rule() - 2 / 3 * _attention_over_rule(),
                "Scores and weighted values have a backward pass too.",
            ),
            Mistake(
                lambda: _over_rule() - _attention_over_rule(),
                "That leaves attention out, as the rule itself does.",
            ),
        ),
        right="Right. The rule errs both ways, and at this length attention weighs more.",
    ),
    Check(
        key="transformers.tied-embedding",
        title="One matrix, used twice",
        answer=_untied,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "How many parameters has the copy, and by how many of them is a token multiplied?",
            "The unembedding is a product in both models; the lookup is one in neither.",
        ),
        mistakes=(
            Mistake(lambda: _untied(tied=True), "That is the tied model, for which the rule holds."),
            Mistake(lambda: _untied() - 1, "That is the excess. The factor is asked for."),
            Mistake(lambda: 1 / _untied(), "That is the inverse: the rule counts more than there is."),
        ),
        right="Right. For small models, say whether P includes a matrix that is only looked up.",
    ),
    Check(
        key="transformers.active-parameters",
        title="Eight times 22 billion",
        answer=lambda: _MIXTRAL.active_params,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Of which parts are there eight, and of which is there one?",
            "Only the MLPs exist eight times. A token meets two of them in each layer.",
        ),
        mistakes=(
            Mistake(lambda: _MIXTRAL.params, "That is what has to be stored, not what one token meets."),
            Mistake(
                lambda: _MIXTRAL.params / 4,
                "Only the experts are chosen. Attention and vocabulary serve every token.",
            ),
            Mistake(
                lambda: 44e9,
                "Two models of 22 billion would have two attentions. There is one, and two experts.",
            ),
            Mistake(lambda: 176e9, "The name multiplies what the experts share as well."),
            Mistake(
                lambda: _MIXTRAL.active_params - _MIXTRAL.by_part["experts"] / 8,
                "That is one expert in each layer. A token visits two.",
            ),
        ),
        right="Right: more than a quarter, because attention and vocabulary are not divided.",
    ),
    Check(
        key="transformers.deepseek-mfu",
        title="How busy was DeepSeek?",
        answer=lambda: _mfu(chips.H100),
        difficulty=2,
        hints=(
            "6 · active parameters · tokens, over what the GPUs could have done in their hours.",
            "An hour has 3,600 seconds. The rate is dense fp8, of the SXM part.",
        ),
        mistakes=(
            Mistake(lambda: _mfu(1.513e15), "That is the rate of the PCIe card. These have NVLink: SXM."),
            Mistake(2, "That is against bf16. The question asks for fp8, at twice the rate."),
            Mistake(0.5, "That is against the rate with sparsity."),
            Mistake(671 / 37, "A token is multiplied by the active parameters, not by all of them."),
            Mistake(1 / 3, "Two FLOPs a weight are the forward pass. Training costs three times as much."),
        ),
        right="Right. Against bf16 it would read twice as well: say which peak you divide by.",
    ),
    Check(
        key="transformers.kept-activations",
        title="What waits for the backward pass",
        answer=lambda: _kept().nbytes,
        unit="B",
        difficulty=2,
        hints=(
            "How wide is each of the seven arrays? Write each as a multiple of D.",
            "Two of the seven are four times as wide as the others.",
        ),
        mistakes=(
            Mistake(
                7 / 13, "That counts arrays. Two of the seven are F wide, not D.", slip="wrong-dimension"
            ),
            Mistake(20 / 13, "Not twenty arrays: those seven, and two of them are F wide."),
            Mistake(
                lambda: _kept("full").nbytes, "That keeps the layers' inputs alone.", slip="term-left-out"
            ),
            Mistake(1 / 64, "That is one layer's.", slip="one-for-total"),
            Mistake(2, "An element of bf16 takes two bytes.", slip="wrong-dtype-size"),
        ),
        right="Right. And this counts no scores: a T × T array for each head would be worse.",
    ),
    Check(
        key="transformers.recomputed-share",
        title="The price of computing again",
        answer=_again,
        difficulty=2,
        hints=(
            "Which products have no saved output? Those of two activations.",
            "4BT²NH against 2BT(3DF + 4D²) + 4BT²NH.",
        ),
        mistakes=(
            Mistake(1 / 3, "That is a share of the training FLOPs. The forward pass is a third of them."),
            Mistake(
                lambda: _again() / (1 - _again()), "The forward pass has scores and weighted values as well."
            ),
            Mistake(lambda: _again(causal=True), "That skips what is masked. Here all of it is computed."),
            Mistake(lambda: _again("full"), "That computes nearly the whole layer again."),
            Mistake(0.5, "Scores and weighted values: two products."),
        ),
        right="Right: a small price at this length, and a higher one for longer sequences.",
    ),
    Check(
        key="transformers.adapter-flops",
        title="Training an adapter",
        answer=_adapter,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Three products train a matrix. Which of them does a frozen one not need?",
            "The frozen matrix: 4BDF. The adapter's two: 6Br(D + F).",
        ),
        mistakes=(
            Mistake(lambda: _adapter() - 1 / 3, "Gradients still have to pass through the frozen matrix."),
            Mistake(lambda: _adapter() + 1 / 3, "A frozen matrix needs no gradient of its own."),
            Mistake(lambda: 2 / 3, "That leaves the adapter itself out."),
            Mistake(lambda: 1 / _adapter(), "That is the inverse: the adapter is the cheaper one."),
        ),
        right="Right. An adapter saves the optimizer's memory, and only a third of the arithmetic.",
    ),
    Check(
        key="transformers.expert-batch",
        title="A batch for 256 experts",
        answer=lambda: rules.critical_batch(chips.V5E, sparsity=256 / 8, weights=INT8).tokens,
        unit="tokens",
        difficulty=2,
        hints=(
            "What does a dense layer need, with one byte a weight and arithmetic in bf16?",
            "All experts are read, and a token is multiplied by k of them: E/k times as many tokens.",
        ),
        mistakes=(
            Mistake(1 / 32, "That is for a dense layer.", slip="factor-left-out"),
            Mistake(2, "That is for weights of two bytes.", slip="wrong-dtype-size"),
            Mistake(8, "A token visits eight experts, and each of them works on it.", slip="factor-left-out"),
            Mistake(lambda: 256 / 8, "That is E/k: by how much more than a dense layer it needs."),
        ),
        right="Right: a mixture of experts is cheap for each token, where there are enough tokens.",
    ),
)

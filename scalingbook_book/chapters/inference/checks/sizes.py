"""Checks of exercises on inference: parameters, KV cache, step time, transfer and queue."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Experts, Transformer, arithmetic
from scalingbook_lib.units import BF16, INT8, DType

MODEL = Transformer(name="M", L=64, D=4096, F=16_384, N=32, K=8, H=256, V=32_128, tied=True)
SPARSE = replace(MODEL, name="M with experts", experts=Experts(E=16, k=2, F=16_384))
LLAMA = models.find("Llama 3 70B")
DEEPSEEK = models.find("DeepSeek-V3")
V5E = chips.V5E


_ATTENTION = 2 * MODEL.L * MODEL.D * MODEL.H * (MODEL.N + MODEL.K)


def _quiz(compute: DType = INT8) -> rules.DecodeStep:
    cache = 8192 * 100e3
    return rules.decode_step(30e9, V5E, 16, batch=256, cache_bytes=cache, weights=INT8, compute=compute)


def _handoff(chips: int = 16) -> float:
    return inference.transfer(LLAMA, P=8192, chip=V5E, chips=chips, kv=INT8).seconds


SIZES = (
    Check(
        key="inference.count-parameters",
        title="Count the parameters",
        answer=lambda: MODEL.params,
        rel_tol=0.002,
        hints=("Each MLP has three matrices.", "Queries and outputs have N heads, keys and values have K."),
        mistakes=(
            Mistake(lambda: MODEL.params + MODEL.V * MODEL.D, "The embeddings are tied: embedding and "
                "unembedding are one matrix."),
            Mistake(lambda: MODEL.params - MODEL.L * MODEL.D * MODEL.F, "The MLP is gated, so it has "
                "three matrices."),
            Mistake(
                lambda: MODEL.params + 2 * MODEL.L * MODEL.D * MODEL.H * (MODEL.N - MODEL.K),
                "Keys and values have 8 heads, not as many as the queries.",
            ),
        ),
    ),
    Check(
        key="inference.cache-per-token",
        title="KV cache per token",
        answer=lambda: arithmetic.kv_cache(MODEL, 1, INT8).nbytes,
        unit="B",
        rel_tol=0.001,
        hints=("How many elements does one layer store per token?", "A key and a value for each KV head."),
        mistakes=(
            Mistake(0.5, "Each token has a key and a value: there are two of them."),
            Mistake(4.0, "Only the 8 KV heads are stored, not all 32 heads."),
            Mistake(2.0, "In int8, an element takes one byte."),
            Mistake(1 / 64, "That is for one layer, and the model has 64."),
        ),
    ),
    Check(
        key="inference.weights-floor",
        title="Reading the weights once",
        answer=lambda: MODEL.params * INT8.bytes / (16 * V5E.hbm_bytes_per_s),
        unit="s",
        hints=("How many bytes do all weights take?", "All sixteen chips read at the same time."),
        mistakes=(
            Mistake(
                16.0, "That is how long one chip needs for all weights. Each reads only a sixteenth of them."
            ),
            Mistake(2.0, "An int8 weight takes one byte."),
        ),
    ),
    Check(
        key="inference.step-in-int8",
        title="A decode step in int8",
        answer=lambda: _quiz().total_s,
        unit="s",
        rel_tol=0.004,
        hints=(
            "Add the cache and the longer of computing and reading the weights.",
            "Compared with the chapter's example, only computing is faster.",
        ),
        mistakes=(
            Mistake(lambda: _quiz(BF16).total_s, "That is the time of the step if it multiplies in bf16."),
            Mistake(
                lambda: _quiz(BF16).total_s / 2, "Reading the cache takes as long as before. Only C doubles."
            ),
            Mistake(
                lambda: _quiz().kv_s + _quiz().weights_s,
                "Compare the two times of the weight matmuls again; they are close to each other.",
            ),
            Mistake(
                lambda: _quiz().kv_s + _quiz().weights_s + _quiz().matmul_s,
                "Computing and reading the weights overlap, so only the longer one counts.",
            ),
        ),
    ),
    Check(
        key="inference.sixteen-experts",
        title="Sixteen experts",
        answer=lambda: SPARSE.params,
        rel_tol=0.005,
        hints=("How many MLPs does each layer have now?", "Attention and the embedding do not change."),
        mistakes=(
            Mistake(lambda: 16 * MODEL.params,
                    "Attention and the embedding are not replicated: only the MLPs become experts.",
                    slip="term-too-often"),
            Mistake(lambda: SPARSE.active_params,
                    "Those are the active parameters, which process one token.", slip="active-for-total"),
            Mistake(lambda: SPARSE.params - _ATTENTION,
                    "The attention matrices are missing.", slip="term-left-out"),
        ),
    ),
    Check(
        key="inference.cache-transfer",
        title="KV transfer between prefill and decode",
        answer=_handoff,
        unit="s",
        hints=("How many bytes do the keys and values of the prompt take?", "All sixteen chips send."),
        mistakes=(
            Mistake(lambda: _handoff(1),
                    "That uses the bandwidth of a single chip, but sixteen chips send.",
                    slip="one-for-total"),
            Mistake(2.0, "In int8, an element takes one byte.", slip="wrong-dtype-size"),
            Mistake(8.0, "Only the 8 KV heads are stored, not all 64 heads.", slip="wrong-count"),
            Mistake(0.5, "Count keys and values: there are two of them.", slip="value-left-out"),
        ),
    ),
    Check(
        key="inference.concurrent-sequences",
        title="Concurrent sequences by Little's law",
        answer=lambda: inference.little(12, 300 * 0.025),
        unit="sequences",
        hints=("How long is one request in decode?", "Multiply the arrivals per second by that time."),
        mistakes=(
            Mistake(40.0, "Those are tokens per second. The question asks how many sequences generate them."),
            Mistake(1 / 12, "That is the time in seconds that one request stays in decode."),
            Mistake(1 / 300, "Each request stays for 300 steps, not for one."),
        ),
        right="Right, and this is the batch size that the server needs memory for.",
    ),
    Check(
        key="inference.hop-latency",
        title="Hop latency on 64 chips",
        answer=lambda: rules.hops_s(LLAMA.L, 14, V5E),
        unit="s",
        hints=("Without wraparound, a message from one end of an axis of 8 to the other takes 7 hops.",
               "Each layer has two AllReduces, each a ReduceScatter and an "
                   "AllGather, over both axes in sequence."),
        mistakes=(
            Mistake(6 / 14, "That is for the 4 × 4 slice; the axes of the 8 × 8 slice are longer."),
            Mistake(8 / 14,
                    "An axis of 8 has no wraparound on v5e; only an axis of 16 closes into a ring.",
                    slip="ring-for-line"),
            Mistake(63 / 14,
                    "Each axis is crossed separately; the chips do not form one line of 64.",
                    slip="wrong-formula-ring"),
            Mistake(0.5, "An AllReduce crosses the mesh twice, once for the ReduceScatter and once for the "
                "AllGather.", slip="one-pass"),
            Mistake(1 / 80, "That is for one of 80 layers.", slip="one-for-total"),
        ),
    ),
)  # fmt: skip

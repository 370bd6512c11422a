"""Can a reader size a model, a cache, a step and a queue? Checks of the first exercises on inference."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Experts, Transformer, arithmetic
from scalingbook_lib.units import BF16, INT8, DType

MODEL = Transformer(name="M", L=64, D=4096, F=16_384, N=32, K=8, H=256, V=32_128, tied=True)
SPARSE = replace(MODEL, name="M with experts", experts=Experts(E=16, k=2, F=16_384))
LLAMA = models.find("LLaMA-3 70B")
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
        title="Count the model",
        answer=lambda: MODEL.params,
        rel_tol=0.002,
        hints=("Three matrices in each MLP.", "Queries and outputs are N heads wide, keys and values K."),
        mistakes=(
            Mistake(lambda: MODEL.params + MODEL.V * MODEL.D, "Embedding and unembedding are one matrix."),
            Mistake(lambda: MODEL.params - MODEL.L * MODEL.D * MODEL.F, "The MLP is gated: three matrices."),
            Mistake(
                lambda: MODEL.params + 2 * MODEL.L * MODEL.D * MODEL.H * (MODEL.N - MODEL.K),
                "Keys and values have 8 heads, not as many as the queries.",
            ),
        ),
    ),
    Check(
        key="inference.cache-per-token",
        title="The bytes of one token",
        answer=lambda: arithmetic.kv_cache(MODEL, 1, INT8).nbytes,
        unit="B",
        rel_tol=0.001,
        hints=("How many numbers does one layer keep?", "A key and a value, for each key-value head."),
        mistakes=(
            Mistake(0.5, "A key and a value: there are two of them."),
            Mistake(4.0, "Only the 8 key-value heads are kept, not all 32."),
            Mistake(2.0, "In int8 an element is one byte."),
            Mistake(1 / 64, "That is one layer; the model has 64."),
        ),
    ),
    Check(
        key="inference.weights-floor",
        title="A floor under every step",
        answer=lambda: MODEL.params * INT8.bytes / (16 * V5E.hbm_bytes_per_s),
        unit="s",
        hints=("How many bytes are all weights?", "All sixteen chips read at the same time."),
        mistakes=(
            Mistake(16.0, "That is one chip reading all of it. Each reads its sixteenth."),
            Mistake(2.0, "An int8 weight is one byte."),
        ),
    ),
    Check(
        key="inference.step-in-int8",
        title="The pop quiz in int8",
        answer=lambda: _quiz().total_s,
        unit="s",
        rel_tol=0.004,
        hints=("The cache, and then the longer of arithmetic and weights.", "Only arithmetic is quicker."),
        mistakes=(
            Mistake(lambda: _quiz(BF16).total_s, "That is the step that multiplies in bf16."),
            Mistake(
                lambda: _quiz(BF16).total_s / 2, "Reading the cache takes as long as before; only C doubles."
            ),
            Mistake(
                lambda: _quiz().kv_s + _quiz().weights_s,
                "Look at both times of the products again; they are near each other.",
            ),
            Mistake(
                lambda: _quiz().kv_s + _quiz().weights_s + _quiz().matmul_s,
                "Arithmetic hides behind reading weights, or the other way: the longer one counts.",
            ),
        ),
    ),
    Check(
        key="inference.sixteen-experts",
        title="Sixteen experts",
        answer=lambda: SPARSE.params,
        rel_tol=0.005,
        hints=("How many MLPs has each layer now?", "Attention and embedding stay as they are."),
        mistakes=(
            Mistake(lambda: 16 * MODEL.params,
                    "Attention and embedding are not copied with the experts.", slip="term-too-often"),
            Mistake(lambda: SPARSE.active_params,
                    "Those are the parameters that one token meets.", slip="active-for-total"),
            Mistake(lambda: SPARSE.params - _ATTENTION,
                    "Attention's matrices are missing.", slip="term-left-out"),
        ),
    ),
    Check(
        key="inference.cache-transfer",
        title="Handing over a prompt",
        answer=_handoff,
        unit="s",
        hints=("How many bytes are the keys and values of the prompt?", "All sixteen chips send."),
        mistakes=(
            Mistake(lambda: _handoff(1),
                    "That is through the share of a single chip; sixteen of them send.",
                    slip="one-for-total"),
            Mistake(2.0, "In int8 an element is one byte.", slip="wrong-dtype-size"),
            Mistake(8.0, "Only the 8 key-value heads are kept, not all 64.", slip="wrong-count"),
            Mistake(0.5, "Keys and values: two of them.", slip="value-left-out"),
        ),
    ),
    Check(
        key="inference.concurrent-sequences",
        title="How many at once?",
        answer=lambda: inference.little(12, 300 * 0.025),
        unit="sequences",
        hints=("How long does one request decode?", "Arrivals a second, times how long each stays."),
        mistakes=(
            Mistake(40.0, "Those are tokens a second; asked is how many sequences write them."),
            Mistake(1 / 12, "That is how many seconds one request stays."),
            Mistake(1 / 300, "Each request stays for 300 steps, not for one."),
        ),
        right="Right: and that is the batch which a server has to have room for.",
    ),
    Check(
        key="inference.hop-latency",
        title="Four times the chips",
        answer=lambda: rules.hops_s(LLAMA.L, 14, V5E),
        unit="s",
        hints=("Without wraparound, a message from end to end of an axis of 8 makes 7 hops.",
               "Two AllReduces a layer, each a gather and a scatter; both axes, one after the other."),
        mistakes=(
            Mistake(6 / 14, "That is the 4 × 4; axes of the 8 × 8 are longer."),
            Mistake(8 / 14,
                    "An axis of 8 has no wraparound here: only one of 16 closes into a ring.",
                    slip="ring-for-line"),
            Mistake(63 / 14,
                    "Each axis is crossed by itself; it is not one line of all chips.",
                    slip="wrong-formula-ring"),
            Mistake(0.5, "An AllReduce crosses the mesh twice: a scatter and a gather.", slip="one-pass"),
            Mistake(1 / 80, "That is one layer.", slip="one-for-total"),
        ),
    ),
)  # fmt: skip

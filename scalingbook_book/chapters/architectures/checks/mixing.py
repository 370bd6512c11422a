"""Exercises on recurrent states, hybrids, chunks, sparse attention and compressed entries."""

from scalingbook_book.chapters.architectures.case import CHOOSES, CSA, DENSE, DSA, HCA, MILLION
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.models.arithmetic.mixers import Entries, MixedLayers, RecurrentState
from scalingbook_lib.units import BF16

_MAMBA = RecurrentState(heads=128, key=128, value=64)
_HEAD = RecurrentState(heads=1, key=64, value=64, erases=True)
_FORTY_EIGHT = RecurrentState(heads=48, key=128, value=128, erases=True)
_LIGHTNING = RecurrentState(heads=64, key=128, value=128)
_GQA = Entries(pair_flops=1, nbytes=4096)
_HYBRID = MixedLayers("", ((10, (_GQA,)), (70, (_LIGHTNING,))))
_S, _SHORT = 131_072, 32_768
_KEPT = "bytes kept"
_INDEX = 4 * (1024 + 128) * CHOOSES.pair_flops / CHOOSES.index_flops
_V4_LIKE = MixedLayers("", ((20, CSA[:1]), (20, HCA[:1])))

CHECKS = (
    Check(
        key="architectures.kept-state",
        title="Memory of a recurrent state",
        answer=lambda: 48 * _MAMBA.nbytes,
        unit="B",
        hints=("How many numbers does the state of one head have?", "A number in fp32 takes four bytes."),
        mistakes=(
            Mistake(1 / 48, "That is for one layer. The question asks for all 48 layers."),
            Mistake(0.5, "The state is in fp32, not in bf16."),
            Mistake(2.0, "A step reads and writes the state, but it is kept only once."),
        ),
    ),
    Check(
        key="architectures.even-length",
        title="When a state is smaller than a cache",
        answer=lambda: _FORTY_EIGHT.nbytes / _GQA.nbytes,
        unit="tokens",
        hints=(
            "What does one full-attention layer keep per token?",
            "Divide the bytes of the state by the bytes per token.",
        ),
        mistakes=(
            Mistake(2.0, "The cache keeps a key and a value for each token."),
            Mistake(0.5, "The state is in fp32, with four bytes per number."),
            Mistake(3.0, "Compare one layer with one layer, not all layers of a hybrid."),
        ),
    ),
    Check(
        key="architectures.step-intensity",
        title="Arithmetic intensity at a batch of 64",
        answer=lambda: (
            RecurrentState(heads=1, key=128, value=128, erases=True, dtype=BF16).intensity
            + 1 / (2 * BF16.bytes)
        ),  # a FLOP more for each number: the decay
        unit="FLOP/B",
        difficulty=2,
        hints=(
            "Count the FLOPs for one number of the state: three products and the decay.",
            "How many times does each of its bytes move?",
        ),
        mistakes=(
            Mistake(
                64.0,
                "Each of the 64 sequences has a state of its own, so the bytes grow with the batch as well.",
            ),
            Mistake(2.0, "The state is read and also written: its bytes move twice."),
            Mistake(5 / 7, "The delta rule erases before it writes, which is one more product."),
            Mistake(6 / 7, "You left out the decay, which multiplies each number once."),
            Mistake(0.5, "The states are in bf16 here."),
        ),
    ),
    Check(
        key="architectures.chunk-flops",
        title="FLOPs of a chunk of 16",
        answer=lambda: _HEAD.chunk_flops(16),
        unit="FLOPs",
        hints=(
            "The delta rule reads the state twice and writes it once.",
            "It takes 6 d² + 8 c d for each token.",
        ),
        mistakes=(
            Mistake(
                16.0, "That is for the whole chunk. The question asks for one token.", slip="total-for-one"
            ),
            Mistake(
                lambda: _HEAD.flops(),
                "You left out the attention among the tokens of the chunk.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: RecurrentState(heads=1, key=64, value=64).chunk_flops(16),
                "That is without the delta rule, which erases before it writes.",
                slip="term-left-out",
            ),
        ),
    ),
    Check(
        key="architectures.hybrid-cap",
        title="A hybrid with seven to one",
        answer=lambda: 80 * _GQA.cached_bytes(_S) / _HYBRID.cached_bytes(_S),
        difficulty=3,
        hints=("Ten layers keep a cache, and seventy keep a state.", "How close does the ratio come to 8?"),
        mistakes=(
            Mistake(
                lambda: 8.0,
                "That is the cap, which no length reaches, because the states take memory as well.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: 7.0, "One layer in eight has full attention, not one in seven.", slip="off-by-one"
            ),
        ),
        rel_tol=0.012,
    ),
    Check(
        key="architectures.relay-bytes",
        title="Bytes that a chip sends for the delta rule",
        answer=_FORTY_EIGHT.handoff_bytes,
        unit="B",
        difficulty=2,
        hints=(
            "A chip sends the state that its part adds, and what the part does to the incoming state.",
            "With the delta rule, the incoming state is multiplied by a d × d matrix.",
        ),
        mistakes=(
            Mistake(
                0.5, "The delta rule multiplies the incoming state by a matrix, which has to be sent as well."
            ),
            Mistake(2.0, "It is sent in bf16, with two bytes per number."),
            Mistake(16.0, "That is for all sixteen chips. The question asks for one."),
        ),
    ),
    Check(
        key="architectures.relay-even",
        title="When ring attention sends more",
        answer=lambda: _LIGHTNING.handoff_bytes() / _GQA.nbytes,
        unit="tokens",
        difficulty=2,
        hints=(
            "Without the delta rule, by what does a part multiply the incoming state?",
            "Compare the states in bf16 with the keys and values of the tokens of one chip.",
        ),
        mistakes=(
            Mistake(2.0, "A decay is one number. A matrix is sent only with the delta rule."),
            Mistake(8.0, "That is for the whole sequence. The question asks for the tokens of one chip."),
        ),
    ),
    Check(
        key="architectures.index-even",
        title="When the index costs more",
        answer=lambda: _INDEX,
        difficulty=2,
        hints=(
            "Attention stops growing at 1,024 entries plus 128 tokens, but the index keeps growing.",
            "The index scores one entry for every four tokens.",
        ),
        mistakes=(
            Mistake(
                0.25,
                "An entry stands for four tokens, so the index scores S/4 entries.",
                slip="factor-left-out",
            ),
            Mistake(
                8 / 9,
                "You left out the window of 128 tokens, which are attended to as well.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: 4096.0, "At that position, attention stops growing, but the index is still cheaper."
            ),
        ),
    ),
    Check(
        key="architectures.index-keeps",
        title="What an index does not reduce",
        answer=lambda: _KEPT,
        choices=("FLOPs per token", "bytes read per step", _KEPT),
        hints=(
            "What does the index itself need for every token?",
            "Which entries could be dropped, if a later token may choose any of them?",
        ),
        mistakes=(
            Mistake(
                "FLOPs per token",
                "The index reduces them: scoring a pair in the index costs 1/17 as much, and attention "
                "has only 2,048 pairs left.",
            ),
            Mistake(
                "bytes read per step",
                "The index reduces them: an index key is a fifth of an entry, and few entries are read.",
            ),
        ),
    ),
    Check(
        key="architectures.sparse-read",
        title="Bytes read per decode step",
        answer=lambda: DENSE.read_bytes(_SHORT) / DSA.read_bytes(_SHORT),
        difficulty=2,
        hints=(
            "A step reads all keys of the index, and 2,048 entries.",
            "That is 132 bytes for every token, and 656 for each chosen one.",
        ),
        mistakes=(
            Mistake(
                lambda: _SHORT / 2048, "All keys of the index have to be read as well.", slip="term-left-out"
            ),
            Mistake(
                lambda: DENSE.flops(_SHORT) / DSA.flops(_SHORT),
                "That is the ratio of the FLOPs. The question asks for bytes.",
            ),
            Mistake(
                lambda: DENSE.nbytes / DSA.index_bytes,
                "That is the limit for very long sequences.",
                slip="term-left-out",
            ),
        ),
    ),
    Check(
        key="architectures.compressed",
        title="Two kinds of compressed layers",
        answer=lambda: _V4_LIKE.cached_bytes(MILLION),
        unit="B",
        difficulty=2,
        hints=(
            "A layer of the first kind keeps 640 bytes per 4 tokens.",
            "A layer of the second kind keeps 576 bytes per 128 tokens.",
        ),
        mistakes=(
            Mistake(
                lambda: MILLION * 20 * (640 + 576),
                "Divide by the number of tokens per entry, which is 4 or 128.",
            ),
            Mistake(
                lambda: MILLION * 20 * (576 / 4 + 4.5),
                "You left out the index, which keeps a key of 64 bytes for each entry.",
            ),
            Mistake(2.0, "Each kind makes up half of the forty layers."),
        ),
    ),
)

"""Can a reader price a state, a hybrid, a chunk, an index and compressed entries?"""

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
        title="What a state keeps",
        answer=lambda: 48 * _MAMBA.nbytes,
        unit="B",
        hints=("How many numbers has one head?", "A number in fp32 has four bytes."),
        mistakes=(
            Mistake(1 / 48, "That is one layer."),
            Mistake(0.5, "The state is kept in fp32, not in bf16."),
            Mistake(2.0, "A step reads and writes it; it is kept once."),
        ),
    ),
    Check(
        key="architectures.even-length",
        title="From which length on",
        answer=lambda: _FORTY_EIGHT.nbytes / _GQA.nbytes,
        unit="tokens",
        hints=("What does one full layer keep of a token?", "State over bytes a token."),
        mistakes=(
            Mistake(2.0, "The cache keeps a key and a value."),
            Mistake(0.5, "Engines keep this state in fp32."),
            Mistake(3.0, "Compare one layer with one layer; the 3:1 is a matter of the whole model."),
        ),
    ),
    Check(
        key="architectures.step-intensity",
        title="A step of a batch of 64",
        answer=lambda: (
            RecurrentState(heads=1, key=128, value=128, erases=True, dtype=BF16).intensity
            + 1 / (2 * BF16.bytes)
        ),  # a FLOP more for each number: the decay
        unit="FLOP/B",
        difficulty=2,
        hints=(
            "FLOPs of one number of the state: three products, and the decay.",
            "How often does its byte move?",
        ),
        mistakes=(
            Mistake(64.0, "Each of the 64 has a state of its own: its bytes grow with the batch, too."),
            Mistake(2.0, "It is read, and it is written."),
            Mistake(5 / 7, "It erases before it writes: that is a product more."),
            Mistake(6 / 7, "The decay multiplies each number once."),
            Mistake(0.5, "The state is in bf16 here."),
        ),
    ),
    Check(
        key="architectures.chunk-flops",
        title="A chunk of 16",
        answer=lambda: _HEAD.chunk_flops(16),
        unit="FLOPs",
        hints=("The delta rule reads the state twice, and writes it.", "6 d² + 8 c d for each token."),
        mistakes=(
            Mistake(16.0, "That is the whole chunk; the question is one token.", slip="total-for-one"),
            Mistake(
                lambda: _HEAD.flops(),
                "Within the chunk tokens attend to one another, too.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: RecurrentState(heads=1, key=64, value=64).chunk_flops(16),
                "That one erases nothing.",
                slip="term-left-out",
            ),
        ),
    ),
    Check(
        key="architectures.hybrid-cap",
        title="Seven to one",
        answer=lambda: 80 * _GQA.cached_bytes(_S) / _HYBRID.cached_bytes(_S),
        difficulty=3,
        hints=("Ten layers keep a cache, seventy a state.", "How close to 8 does it come?"),
        mistakes=(
            Mistake(
                lambda: 8.0,
                "That is the cap, which no length reaches: the states count, too.",
                slip="term-left-out",
            ),
            Mistake(lambda: 7.0, "One layer in eight is full, not one in seven.", slip="off-by-one"),
        ),
        rel_tol=0.012,
    ),
    Check(
        key="architectures.relay-bytes",
        title="What one chip tells the others",
        answer=_FORTY_EIGHT.handoff_bytes,
        unit="B",
        difficulty=2,
        hints=(
            "A state, and what the part does to the state before it.",
            "With erasing the latter is a matrix of key by key.",
        ),
        mistakes=(
            Mistake(0.5, "To erase is to multiply the state before by a matrix: it is sent, too."),
            Mistake(2.0, "It is sent in bf16."),
            Mistake(16.0, "One chip's part is asked for, not all sixteen."),
        ),
    ),
    Check(
        key="architectures.relay-even",
        title="When a ring sends more",
        answer=lambda: _LIGHTNING.handoff_bytes() / _GQA.nbytes,
        unit="tokens",
        difficulty=2,
        hints=(
            "Nothing is erased: what does a part do to the state before?",
            "A state in bf16, against the entries of the tokens of one chip.",
        ),
        mistakes=(
            Mistake(2.0, "A decay is one number; the matrix is sent where something is erased."),
            Mistake(8.0, "That is the whole sequence; the question is one chip's part."),
        ),
    ),
    Check(
        key="architectures.index-even",
        title="When the index costs more",
        answer=lambda: _INDEX,
        difficulty=2,
        hints=(
            "Attention stops growing at 1,024 entries and 128 tokens; the index does not.",
            "The index scores one entry for every four tokens.",
        ),
        mistakes=(
            Mistake(0.25, "An entry stands for four tokens: the index scores S/4.", slip="factor-left-out"),
            Mistake(8 / 9, "The window's 128 tokens are attended to as well.", slip="term-left-out"),
            Mistake(lambda: 4096.0, "There attention stops growing; a pair of the index is still cheaper."),
        ),
    ),
    Check(
        key="architectures.index-keeps",
        title="What an index does not lower",
        answer=lambda: _KEPT,
        choices=("FLOPs of a token", "bytes read by a step", _KEPT),
        hints=(
            "What does the index itself need, for every token?",
            "Which entries may it drop, if a later token may choose any?",
        ),
        mistakes=(
            Mistake("FLOPs of a token", "A pair of the index is 17 times cheaper, and 2,048 pairs are left."),
            Mistake(
                "bytes read by a step", "The index's keys are a fifth of an entry; few entries are read."
            ),
        ),
    ),
    Check(
        key="architectures.sparse-read",
        title="What a step reads",
        answer=lambda: DENSE.read_bytes(_SHORT) / DSA.read_bytes(_SHORT),
        difficulty=2,
        hints=("All index keys, and 2,048 entries.", "132 bytes of each token, 656 of the chosen."),
        mistakes=(
            Mistake(lambda: _SHORT / 2048, "The index has to be read as well, whole.", slip="term-left-out"),
            Mistake(lambda: DENSE.flops(_SHORT) / DSA.flops(_SHORT), "That is the FLOPs."),
            Mistake(
                lambda: DENSE.nbytes / DSA.index_bytes,
                "That is the limit for endless sequences.",
                slip="term-left-out",
            ),
        ),
    ),
    Check(
        key="architectures.compressed",
        title="Two compressions in turn",
        answer=lambda: _V4_LIKE.cached_bytes(MILLION),
        unit="B",
        difficulty=2,
        hints=("One layer keeps 640 bytes every 4 tokens.", "The other 576 every 128."),
        mistakes=(
            Mistake(lambda: MILLION * 20 * (640 + 576), "An entry stands for 4 tokens, or for 128: divide."),
            Mistake(
                lambda: MILLION * 20 * (576 / 4 + 4.5), "The index keeps a key of 64 bytes beside an entry."
            ),
            Mistake(2.0, "Each kind has half of the forty layers."),
        ),
    ),
)

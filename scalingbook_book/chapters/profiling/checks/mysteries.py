"""Checks of the ten mysteries: what is wrong in a log, a profile, a table, a script or a program.

The checks also run where the files are not, so their numbers are constants here.
`tests/book/test_mysteries.py` reads them from `data/mysteries`.
"""

from functools import cache
from typing import Any

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import calibrated, models, training
from scalingbook_lib.launch.training import software
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training import Plan
from scalingbook_lib.units import BF16, FP32, GiB

# loss-by-rank.csv: the tokens that the log counts for a step, and the mesh
TOKENS, DATA, MODEL = 8192, 8, 2

# idle-chip.json: seconds of an average batch, of the median batch, and of a step without its batch
BATCH_S, MEDIAN_BATCH_S, STEP_S = 0.0154511, 0.0064922, 0.0051458

# compile-log.txt: seconds of all compilations of the step, of the first, of the evaluation's; of all steps
COMPILED_S, FIRST_S, EVALUATION_S, RUN_S = 78.84, 4.02, 0.6, 7.125

# ranks.csv: milliseconds of an average step, of one without the slow ring, and of the two rings
STEP_MS, REPAIRED_MS, SLOW_RING_MS, RING_MS = 575.200, 485.270, 151.600, 61.670

# tight-memory.hlo.gz: bytes of the replicated state, and the devices that hold it
REPLICATED, HOLDERS = 8 * GiB, 16

# experts.csv: the busiest chip of each layer over the mean, the hottest expert of all layers, and of a layer
BUSIEST = (1.102783, 1.076904, 1.097412, 1.127441, 1.095703, 5.316895, 1.080322, 1.075195)
HOTTEST, HOTTEST_ON_AVERAGE = 19.513672, 3.511719

# eight-nodes.hlo.gz: seconds of a run, and what the order of the axes costs
RUN_ESTIMATE_S, ORDER_S, DATA_AXIS_S = 0.0975, 0.0501, 0.0021

# one-layer.hlo.gz: FLOPs of the program, and those of the padding
FLOPS, PADDING = 797e9, 408e9

# twelve-layers.hlo.gz
LAYERS, MICROBATCHES = 12, 4

LONG_STEPS = 12_000


@cache
def context_step_s(balanced: bool) -> float:
    """The predicted step of long-context.sh, with or without balanced blocks."""
    precision: dict[str, Any] = {
        "weights": FP32,
        "gradients": FP32,
        "reduced": BF16,
        "master": None,
        "logit_bytes": 2.0,
    }
    plan = Plan(
        fsdp=8,
        cp=8,
        zero=3,
        context="ring",
        zigzag=balanced,
        remat="selective",
        collective_matmul=True,
        **precision,
    )
    return training.step(
        models.find("Llama 3 8B"),
        Slice.of(chips.V5P, "4x4x4"),
        plan,
        batch=8,
        T=131_072,
        efficiency=calibrated.training(chips.V5P, software=software("maxtext", chips.V5P)),
    ).total_s


def saved_s() -> float:
    """What balanced blocks save over all steps."""
    return LONG_STEPS * (context_step_s(False) - context_step_s(True))


MYSTERIES = (
    Check(
        key="profiling.mystery-loss",
        title="Sixteen ranks and a noisy loss",
        answer=lambda: TOKENS / DATA,
        unit="tokens",
        difficulty=3,
        hints=(
            "In one step, which ranks should report the same loss, and which should not?",
            (
                "Count the different values of `loss` in a step. Independent batches also make the norm of "
                "the mean gradient smaller than the norms of the ranks' own gradients."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: TOKENS,
                "That is what the log counts. It adds up the tokens of all data-parallel ranks. Are they "
                "different tokens?",
            ),
            Mistake(
                1 / MODEL,
                "You divided by all ranks. The two ranks of a tensor-parallel pair share a batch in any run, "
                "and the log counts it once.",
            ),
            Mistake(
                lambda: TOKENS / MODEL,
                "That would be right if only the pairs of tensor-parallel ranks had equal batches. Compare "
                "the losses of different pairs.",
            ),
        ),
        right="Right. Every data-parallel rank draws the same batch, because the seed leaves out the rank.",
    ),
    Check(
        key="profiling.mystery-idle",
        title="A chip that computes a quarter of the time",
        answer=lambda: BATCH_S,
        unit="s",
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "What does the host do while the device is idle? Look at all batches, not only the first.",
            "If one thread does nothing but read, how many batches per second can it deliver on average?",
        ),
        mistakes=(
            Mistake(
                lambda: STEP_S,
                "That is the step without its batch. A queue cannot deliver more batches than the thread "
                "reads.",
            ),
            Mistake(
                lambda: MEDIAN_BATCH_S,
                "That is the median time to read a batch. The slow batches count, too, because the queue "
                "runs empty.",
            ),
            Mistake(
                lambda: BATCH_S + STEP_S,
                "That is the step as it is now. With a thread, reading and computing overlap.",
            ),
        ),
        right=(
            "Right. The reader is now the limit, so it takes several threads, or faster storage, to "
            "keep the device busy."
        ),
    ),
    Check(
        key="profiling.mystery-compiler",
        title="A loop that starts slowly and stays slow",
        answer=lambda: COMPILED_S - FIRST_S,
        unit="s",
        difficulty=3,
        rel_tol=0.005,
        hints=(
            "What differs between two lines that begin with `Compiling jit(step)`?",
            "Add up the times of `Finished XLA compilation of jit(step)`, except for the first one.",
        ),
        mistakes=(
            Mistake(
                lambda: COMPILED_S,
                "That includes the first compilation, which every run needs.",
            ),
            Mistake(
                lambda: COMPILED_S - FIRST_S + EVALUATION_S,
                "`evaluate` is compiled once, which is not a fault. Add up only the compilations of `step`.",
            ),
            Mistake(
                lambda: COMPILED_S + EVALUATION_S,
                "Those are all compilations. The first ones of `step` and of `evaluate` are needed.",
            ),
            Mistake(lambda: RUN_S, "That is the time of the steps. What does the log say between them?"),
        ),
        right="Right. Lengths are rounded up to multiples of 32, which makes 22 different shapes.",
    ),
    Check(
        key="profiling.mystery-ranks",
        title="Thirty-two GPUs that wait for one of them",
        answer=lambda: 1 - REPAIRED_MS / STEP_MS,
        difficulty=3,
        rel_tol=0.03,
        hints=(
            "Four ranks have a longer `ring_ms` than the others. What do they share, and what don't they?",
            "Only one NIC is busy during the whole ring. The others of its ring wait for it.",
            (
                "A step takes the longest `compute_ms` plus the longest `ring_ms`. Compute it with and "
                "without the slow ring."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: STEP_MS / REPAIRED_MS - 1,
                "That is relative to the repaired step. The question is by what share of the present step it "
                "becomes shorter.",
                slip="ratio-for-excess",
            ),
            Mistake(
                lambda: 1 - RING_MS / SLOW_RING_MS,
                "That is how much the ring becomes shorter. A step consists of compute and of a ring.",
            ),
            Mistake(
                lambda: SLOW_RING_MS / STEP_MS,
                "That is the share of the slow ring. A healthy ring takes time, too.",
            ),
        ),
        right="Right. The NIC of rank 19 sends at two fifths of the rate of the others.",
    ),
    Check(
        key="profiling.mystery-memory",
        title="A step that fills the memory",
        answer=lambda: REPLICATED * (1 - 1 / HOLDERS),
        unit="B",
        difficulty=3,
        rel_tol=0.005,
        hints=(
            "Under FSDP, how many bytes of the state should each device hold? Compare the arguments.",
            "Which arguments have the same shape on one device as in the whole model?",
            "If an array is sharded, each device still holds its own part.",
        ),
        mistakes=(
            Mistake(
                lambda: REPLICATED,
                "That is all of the replicated state. After the correction, each device still holds a shard.",
            ),
            Mistake(
                lambda: REPLICATED / HOLDERS,
                "That is what remains on each device. How much does it save?",
            ),
            Mistake(0.5, "Two arrays are replicated, not one."),
        ),
        right=(
            "Right. The second moments of two matrices have no sharding, so every device holds all of them."
        ),
    ),
    Check(
        key="profiling.mystery-experts",
        title="Eight layers with 64 experts each",
        answer=lambda: sum(BUSIEST) / len(BUSIEST),
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "In each layer, all chips wait for the one whose four experts receive most tokens.",
            (
                "`expert_load.balance(loads, 16, rebalanced=False).chips` has the load of every chip over "
                "the mean."
            ),
            "Every layer has the same number of tokens, so average the factors of the layers.",
        ),
        mistakes=(
            Mistake(
                lambda: max(BUSIEST),
                "That is the factor of the slowest layer. The question is about all eight.",
                slip="one-for-total",
            ),
            Mistake(
                lambda: HOTTEST,
                "That is the hottest expert over the mean expert. It shares its chip with three others, and "
                "seven layers are even.",
            ),
            Mistake(
                lambda: HOTTEST_ON_AVERAGE,
                "You averaged the hottest experts. A chip has four experts, and the others have less to do.",
            ),
        ),
        right=(
            "Right. Expert 23 of layer 5 receives 20 times the mean. One layer makes all eight take this "
            "much longer."
        ),
    ),
    Check(
        key="profiling.mystery-nodes",
        title="Eight nodes and a mesh",
        answer=lambda: RUN_ESTIMATE_S - ORDER_S,
        unit="s",
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "Which devices form a group of the collective that receives most bytes? Are they in one node?",
            "The last axis of a mesh is innermost: its devices are neighbors.",
            (
                "`inspect` says how long the transfers take now, and how long they would take with another "
                "order of the axes."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: ORDER_S,
                "That is what the run saves. How long does it still take?",
            ),
            Mistake(
                lambda: RUN_ESTIMATE_S,
                "That is the run as it is. Which axis should be innermost?",
            ),
            Mistake(
                lambda: RUN_ESTIMATE_S - ORDER_S - DATA_AXIS_S,
                "The gradients have to be reduced in either order, and between the nodes this takes longer.",
            ),
        ),
        right="Right. Tensor parallelism needs the fast links, so its axis has to be the last of the mesh.",
    ),
    Check(
        key="profiling.mystery-context",
        title="A script for 128k tokens",
        answer=saved_s,
        unit="s",
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "`scalingbook launch` ends its report with the changes that help most. Which one costs nothing?",
            (
                "With a causal mask, the first block of a sequence has little to attend to, and the last "
                "one a lot. Which flag decides who gets which block?"
            ),
            "Multiply the difference of the step times by the number of steps.",
        ),
        mistakes=(
            Mistake(
                lambda: saved_s() / LONG_STEPS,
                "That is what one step saves. The script runs 12,000 of them.",
                slip="one-for-total",
            ),
            Mistake(
                lambda: LONG_STEPS * context_step_s(True),
                "That is how long all steps take after the correction. How much is saved?",
            ),
            Mistake(
                lambda: LONG_STEPS * context_step_s(False),
                "That is how long all steps take as the script is. How much does one flag save?",
            ),
        ),
        right=(
            "Right. Seven of eight chips wait for the one with the end of the sequence, unless each gets a "
            "block from the beginning and one from the end."
        ),
    ),
    Check(
        key="profiling.mystery-layer",
        title="An attention block on one chip",
        answer=lambda: PADDING / (FLOPS + PADDING),
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "Which dimension of the matmuls is not a multiple of 128?",
            (
                "`.program.work` has the FLOPs of the program and those of the padding, which come in "
                "addition."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: PADDING / FLOPS,
                "That is the padding relative to the useful FLOPs. The matrix units perform both.",
                slip="ratio-for-excess",
            ),
            Mistake(
                lambda: 0.6,
                "That is the padding of one matmul relative to its useful FLOPs. Not every matmul is padded.",
            ),
            Mistake(
                lambda: 48 / 128,
                "That is the padding of one matmul. Some matmuls of the block are not padded.",
            ),
        ),
        right="Right. Heads of 80 take as long as heads of 128.",
    ),
    Check(
        key="profiling.mystery-twelve",
        title="Twelve layers that stop and go",
        answer=lambda: 2 * LAYERS * MICROBATCHES,
        unit="",
        difficulty=3,
        hints=(
            "The text of the program contains the call only a few times. What surrounds it?",
            "Multiply by the trip counts of all loops around it, and count every loop that contains a call.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "That is the forward pass. The backward pass computes the layers again, with their calls.",
                slip="forward-only",
            ),
            Mistake(
                1 / MICROBATCHES,
                "That is for one microbatch. The loop over layers is inside a loop over microbatches.",
            ),
            Mistake(
                lambda: LAYERS,
                "That is the number of layers. They run several times in a step.",
            ),
            Mistake(
                lambda: 2.0,
                "That is how often the call appears in the text. The text of a loop's body appears once.",
            ),
        ),
        right="Right. A line for debugging was left in the layer, and recomputation runs it twice.",
    ),
)

"""Checks on traces that come with the book: what went wrong, and where the time went."""

from collections.abc import Iterable

from scalingbook_book.chapters.profiling.checks import recorded as r
from scalingbook_book.reader.checks.check import Check, Mistake

type Stretch = tuple[int, int]  # microseconds, from and until

MATH = tuple((53 * i % 997, 53 * i % 997 + 4 + 7 * i % 11) for i in range(40))
LINKS = tuple((71 * i % 997, 71 * i % 997 + 2 + 5 * i % 17) for i in range(60))


def covered(stretches: Iterable[Stretch]) -> set[int]:
    """The microseconds that at least one interval covers."""
    return {t for start, end in stretches for t in range(start, end)}


def exposed_s() -> float:
    """Seconds of transfers while nothing computes, counted microsecond by microsecond."""
    return 1e-6 * len(covered(LINKS) - covered(MATH))


def _one_by_one_s() -> float:
    """Exposed seconds of each transfer by itself, added up."""
    busy = covered(MATH)
    return 1e-6 * sum(len(covered([stretch]) - busy) for stretch in LINKS)


def _received() -> float:
    """Bytes that a device receives for all AllReduces of a run, each a ReduceScatter and an AllGather."""
    return r.SUMS * 2 * (r.DEVICES - 1) / r.DEVICES * r.SUMMED_BYTES


TRACES = (
    Check(
        key="profiling.gathered-array",
        title="Which array is gathered?",
        answer=lambda: "W, the weights",
        choices=("X, the input", "W, the weights", "H, the hidden layer", "Y, the result"),
        hints=(
            "The profile says how many bytes are gathered. Compute the size of each of the four arrays.",
            "A bf16 number has two bytes.",
        ),
        mistakes=(
            Mistake(
                "X, the input",
                "Gathering X would move only half of these bytes.",
                slip="wrong-option",
            ),
            Mistake(
                "H, the hidden layer",
                "Gathering the hidden layer would move four times as many bytes.",
                slip="wrong-option",
            ),
            Mistake(
                "Y, the result",
                "The result does not belong to the first matmul, and it has only half of these bytes.",
                slip="wrong-option",
            ),
        ),
        right="Right. It has 1,024 rows of 8,192 numbers, with two bytes each.",
    ),
    Check(
        key="profiling.exposed-share",
        title="How much communication is exposed?",
        answer=lambda: r.EXPOSED_S / r.RUN_S,
        hints=(
            (
                "A run consists of compute, exposed communication and gaps. The shares in the table "
                "leave out the gaps."
            ),
            (
                "`.breakdown` shows both: the seconds of a run, and the seconds in which only the links "
                "are busy."
            ),
        ),
        mistakes=(
            Mistake(
                r.COMMS_SHARE * r.RUN_S / r.EXPOSED_S,
                "That is a share of the time in which devices are busy. A run also has gaps, and they count.",
            ),
            Mistake(r.GATHER_S / r.EXPOSED_S, "The AllReduce is exposed, too."),
        ),
    ),
    Check(
        key="profiling.bytes-per-run",
        title="How often, and how many bytes?",
        answer=_received,
        unit="B",
        rel_tol=0.01,
        hints=(
            "`.collectives` shows the array and how often it is reduced in a run.",
            "In an AllReduce over n devices, each device receives 2 (n − 1)/n of the array.",
        ),
        mistakes=(
            Mistake(1 / r.SUMS, "That is for a single AllReduce. How often does it run?"),
            Mistake(
                2 / 3,
                (
                    "That is the size of the arrays themselves. An AllReduce is a ReduceScatter and then "
                    "an AllGather."
                ),
            ),
            Mistake(
                4 / 3,
                (
                    "A device does not receive its own quarter, neither in the ReduceScatter nor in the "
                    "AllGather."
                ),
            ),
            Mistake(0.5, "That is only the ReduceScatter. An AllReduce gathers the sums as well."),
            Mistake(float(r.RUNS), "The profile has three runs. How many bytes does one run take?"),
            Mistake(float(r.DEVICES), "That is the total of all four devices."),
        ),
        right="Right. If each device added up its gradients first, a twelfth of the bytes would be enough.",
    ),
    Check(
        key="profiling.compilation-share",
        title="Compilation time that no device shows",
        answer=lambda: r.COMPILE_S / r.STEPS_S,
        hints=(
            "`.host` lists the steps and the compilations, with their start and duration.",
            (
                "Add up the compilations. The total time is from the `start_s` of the first step to the "
                "end of the last one."
            ),
        ),
        mistakes=(
            Mistake(
                r.DEVICE_S / r.COMPILE_S,
                "That is the time in which the device works. What did the host do in the meantime?",
            ),
            Mistake(r.STEPS_S / r.COMPILE_S - 1, "That is the share of everything else."),
            Mistake(
                r.STEPS_S / r.FROM_COMPILE_S,
                (
                    "You started to count at the first compilation. The first step begins before it, as "
                    "`.host` shows."
                ),
            ),
        ),
        right="Right. Each new batch length needs a new program.",
    ),
    Check(
        key="profiling.waiting-time",
        title="Waiting for the slowest device",
        answer=lambda: r.WAITING,
        difficulty=2,
        hints=(
            "In each run, the k-th AllReduce of every device belongs to the same collective.",
            "A device waits from its own start until the last of the four devices starts.",
            (
                "Add up the waiting over all devices, AllReduces and runs, and divide by the total "
                "duration of these events."
            ),
        ),
        mistakes=(
            Mistake(
                1 / r.WAITING - 1,
                "That is the share of the time in which all four devices take part.",
                slip="complement",
            ),
            Mistake(
                r.BEYOND_SHORTEST / r.WAITING,
                "You compared with the shortest of the four events. Compare when they start.",
            ),
        ),
        right="Right. Nearly half of what looks like communication is waiting for another device.",
    ),
    Check(
        key="profiling.exposed-time",
        title="Exposed time from two lanes",
        answer=exposed_s,
        unit="s",
        difficulty=2,
        rel_tol=0.005,
        hints=(
            "Intervals of one lane can overlap. First merge them into intervals that do not.",
            "The exposed time is what both lanes cover together, minus what compute covers.",
        ),
        mistakes=(
            Mistake(
                lambda: 1e-6 * len(covered(LINKS)),
                "That is all of the communication, and some of it is hidden.",
            ),
            Mistake(
                lambda: 1e-6 * sum(end - start for start, end in LINKS),
                "That is the sum of all transfers. Some of them run at the same time, and some are hidden.",
            ),
            Mistake(lambda: 1e-6 * len(covered(LINKS) & covered(MATH)), "That is the part that is hidden."),
            Mistake(_one_by_one_s, "Time in which several transfers run at once is exposed only once."),
        ),
    ),
)

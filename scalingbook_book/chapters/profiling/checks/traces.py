"""Can a reader find in a profile what went wrong? Questions on the traces that travel with the book."""

from collections.abc import Iterable

from scalingbook_book.chapters.profiling.checks import recorded as r
from scalingbook_book.reader.checks.check import Check, Mistake

type Stretch = tuple[int, int]  # microseconds, from and until

MATH = tuple((53 * i % 997, 53 * i % 997 + 4 + 7 * i % 11) for i in range(40))
LINKS = tuple((71 * i % 997, 71 * i % 997 + 2 + 5 * i % 17) for i in range(60))


def covered(stretches: Iterable[Stretch]) -> set[int]:
    """The microseconds in which at least one of them runs."""
    return {t for start, end in stretches for t in range(start, end)}


def exposed_s() -> float:
    """Transfers while nothing computes, counted microsecond by microsecond."""
    return 1e-6 * len(covered(LINKS) - covered(MATH))


def _one_by_one_s() -> float:
    """The same for each transfer by itself, added up."""
    busy = covered(MATH)
    return 1e-6 * sum(len(covered([stretch]) - busy) for stretch in LINKS)


def _received() -> float:
    """What a device receives for all sums of a run: a share for adding, and again for handing round."""
    return r.SUMS * 2 * (r.DEVICES - 1) / r.DEVICES * r.SUMMED_BYTES


TRACES = (
    Check(
        key="profiling.gathered-array",
        title="Which array travels?",
        answer=lambda: "H, the hidden layer",
        choices=("X, the input", "W, the weights", "H, the hidden layer", "Y, the result"),
        hints=(
            "The table says how many bytes are gathered. Multiply the sizes of each of the four.",
            "A number in fp32 has four bytes.",
        ),
        mistakes=(
            Mistake(
                "X, the input",
                "All devices have X from the beginning, and it has fewer bytes.",
                slip="wrong-option",
            ),
            Mistake(
                "W, the weights",
                "Gathered weights would be a sixteenth as many bytes: see the table.",
                slip="wrong-option",
            ),
            Mistake(
                "Y, the result",
                "The result is what is added up; its bytes are those of X.",
                slip="wrong-option",
            ),
        ),
        right="Right: 2,048 rows of 4,096 numbers, because it was asked for in one piece.",
    ),
    Check(
        key="profiling.exposed-share",
        title="How much of it is exposed?",
        answer=lambda: r.EXPOSED_S / r.RUN_S,
        hints=(
            "A run is computing, exposed communication, and gaps. The table's shares leave out the gaps.",
            "`.breakdown` tells both: seconds of a run, and those in which only the links are busy.",
        ),
        mistakes=(
            Mistake(
                r.COMMS_SHARE * r.RUN_S / r.EXPOSED_S,
                "That is the share of what devices are busy with. A run also has gaps, and they count.",
            ),
            Mistake(r.GATHER_S / r.EXPOSED_S, "The all-reduce is exposed, too."),
        ),
    ),
    Check(
        key="profiling.bytes-per-run",
        title="How often, and how many bytes?",
        answer=_received,
        unit="B",
        rel_tol=0.01,
        hints=(
            "`.collectives` has the array and how often it is summed in a run.",
            "In an AllReduce over n devices, each receives 2 (n − 1)/n of the array.",
        ),
        mistakes=(
            Mistake(1 / r.SUMS, "That is one of them. How often does it run?"),
            Mistake(2 / 3, "Those are the arrays themselves. An AllReduce adds, and then hands round."),
            Mistake(4 / 3, "A device's own quarter does not travel, neither in adding nor in handing round."),
            Mistake(0.5, "That is a ReduceScatter. An AllReduce hands the sums round as well."),
            Mistake(float(r.RUNS), "The profile has three runs; asked is one."),
            Mistake(float(r.DEVICES), "That is all four devices together."),
        ),
        right="Right: and added up on each device first, a twelfth would do.",
    ),
    Check(
        key="profiling.compilation-share",
        title="Time that no device shows",
        answer=lambda: r.COMPILE_S / r.STEPS_S,
        hints=(
            "`.host` has the steps and the compilations, with their beginning and length.",
            "Add up the compilations. The whole is from the first step's `start_s` to the end of the last.",
        ),
        mistakes=(
            Mistake(
                r.DEVICE_S / r.COMPILE_S, "That is the device's work. What did the host do in the meantime?"
            ),
            Mistake(r.STEPS_S / r.COMPILE_S - 1, "That is all the rest."),
            Mistake(
                r.STEPS_S / r.FROM_COMPILE_S,
                "That counts from the first compilation on. The first step begins before it: see `.host`.",
            ),
        ),
        right="Right. A new length of batch is a new program.",
    ),
    Check(
        key="profiling.waiting-time",
        title="Waiting for the last one",
        answer=lambda: r.WAITING,
        difficulty=2,
        hints=(
            "In each run, the k-th all-reduce of every device is one and the same sum.",
            "A device waits from its own beginning until that of the last of the four.",
            "Add the waiting of all devices, sums and runs; divide by the length of all these events.",
        ),
        mistakes=(
            Mistake(1 / r.WAITING - 1, "That is the share in which all four are there.", slip="complement"),
            Mistake(
                r.BEYOND_SHORTEST / r.WAITING,
                "That compares with the shortest of four events. Compare when they begin.",
            ),
        ),
        right="Right: nearly half of what looks like communication is waiting for another device.",
    ),
    Check(
        key="profiling.exposed-time",
        title="Two lanes",
        answer=exposed_s,
        unit="s",
        difficulty=2,
        rel_tol=0.005,
        hints=(
            "Stretches of a lane overlap each other: first make stretches of it that do not.",
            "Exposed is what both lanes cover together, less what computing covers.",
        ),
        mistakes=(
            Mistake(lambda: 1e-6 * len(covered(LINKS)), "That is all communication. Some of it is hidden."),
            Mistake(
                lambda: 1e-6 * sum(end - start for start, end in LINKS),
                "That is the sum of all transfers; some run at the same time, and some are hidden.",
            ),
            Mistake(lambda: 1e-6 * len(covered(LINKS) & covered(MATH)), "That is the part that is hidden."),
            Mistake(_one_by_one_s, "Transfers that run at the same time are exposed once."),
        ),
    ),
)

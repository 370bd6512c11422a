"""Try to break the library with random command lines, configurations, notations, answers and interrupts.

`python -m tools.trust.attack [--seed 0] [--minutes 15] [--only commands --at 1234]`, or `make attack`. Each
trial is determined by the seed, its kind and its number, so a failing trial can be repeated alone. The counts
are printed at the end; the exit status is 1 if anything failed.
"""

import argparse
import io
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tools.trust import given, lines

MOST_S = 30  # CPU seconds for one trial; a search that is stopped reports what it has found
SHARES = {"commands": 6, "configurations": 2, "notations": 2, "kills": 2, "outputs": 1}


class TooLong(BaseException):
    """A trial that does not end; nothing in the library may catch this exception."""


@dataclass
class Kind:
    """One kind of trial, and its results."""

    name: str
    share: float
    tried: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    @property
    def trial(self) -> Callable[[random.Random], str]:
        """The function of one trial, which returns its outcome in a word or two; a failure raises."""
        return getattr(lines, self.name, None) or getattr(given, self.name)

    def __str__(self) -> str:
        ends = ", ".join(f"{n:,} {end}" for end, n in sorted(self.ends.items()))
        return f"{self.name}: {self.tried:,} tried; {ends or 'none held'}; {len(self.broken)} broken"


@contextmanager
def limited() -> Iterator[None]:
    """Stop a trial that takes too long."""

    def stop(*_: object) -> None:
        raise TooLong(f"takes more than {MOST_S} s of the processor")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def attempt(kind: Kind, seed: int, number: int) -> None:
    """Run one trial and record its outcome."""
    kind.tried += 1
    try:
        with limited():
            end = kind.trial(random.Random(f"{seed} {kind.name} {number}"))
    except (Exception, TooLong, SystemExit) as error:
        told = f"{kind.name} --at {number}: {type(error).__name__}: {str(error)[:600]}"
        kind.broken.append(told)
        print(told, flush=True)
    else:
        kind.ends[end] = kind.ends.get(end, 0) + 1


def main() -> int:
    """Run trials until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m tools.trust.attack", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--only", choices=list(SHARES))
    parser.add_argument("--at", type=int, help="one trial alone")
    asked = parser.parse_args()
    sys.stdin = io.StringIO()
    kinds = [Kind(name, share) for name, share in SHARES.items() if asked.only in (None, name)]
    for kind in kinds:
        until = time.monotonic() + 60 * asked.minutes * kind.share / sum(one.share for one in kinds)
        number = asked.at or 0
        while time.monotonic() < until and (asked.at is None or kind.tried == 0):
            attempt(kind, asked.seed, number)
            number += 1
        print(kind, flush=True)
    return 1 if any(kind.broken for kind in kinds) else 0


if __name__ == "__main__":
    raise SystemExit(main())

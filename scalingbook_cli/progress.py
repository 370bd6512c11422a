"""Progress of a search on standard error; Ctrl-C ends the search with the best result so far."""

import signal
import sys
from collections.abc import Callable
from time import monotonic
from types import FrameType, TracebackType
from typing import Self

import click

EVERY_S = 1.0

progress_option = click.option(
    "--progress",
    is_flag=True,
    help="Report the progress of the search even if standard error is not a terminal.",
)


class Progress:
    """A callback for searches that reports progress, and stops them after Ctrl-C.

    A terminal shows one line after the first second. `always`, for programs, prints a line at once and then
    every second.
    """

    def __init__(self, describe: Callable[[int, int], str], *, always: bool) -> None:
        self.describe, self.stopped = describe, False
        self._terminal = sys.stderr.isatty()
        self._shown, self._shows = False, always or self._terminal
        self._next_s = monotonic() + (0.0 if always else EVERY_S)
        self._mine = (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )  # leave it alone if the signal is ignored

    def __call__(self, done: int, of: int) -> bool:
        """Whether to stop, after `done` of `of`."""
        if self._shows and monotonic() >= self._next_s:
            self._next_s, self._shown = monotonic() + EVERY_S, True
            self._say(f"{self.describe(done, of)}; Ctrl-C stops the search and prints the best so far")
        return self.stopped

    def __enter__(self) -> Self:
        if self._mine:
            signal.signal(signal.SIGINT, self._stop)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._shown and self._terminal:
            self._say("")

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopped = True
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second Ctrl-C ends at once

    def _say(self, line: str) -> None:
        sys.stderr.write(f"\r{line}\x1b[K" if self._terminal else f"{line}\n")
        sys.stderr.flush()

"""A file lock that makes a second build of the same folder wait for the first."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def build_lock(folder: Path) -> Iterator[None]:
    """Hold the exclusive lock of `folder`; turn an OSError within the block into a one-sentence exit."""
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
            held.callback(os.close, lock)
            os.set_inheritable(lock, True)  # a child of a killed build may outlive it and keep writing
            _wait(lock, folder)
            yield
        except OSError as error:
            told = error.strerror or error.args[0][0][2]  # if many files of a copy failed, the first one
            raise SystemExit(f"the site: {folder}: {told}; what was published stays as it was") from error


def _wait(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"site: waiting for another that writes into {folder}", file=sys.stderr, flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)

"""Report which host of a run has died, in one sentence instead of JAX's stack trace.

When a process dies, JAX ends all others with a stack trace of its own. `watch(folder)` starts a reader of
this process's standard error that passes on every line except that stack trace. Chapter: Training.
"""

import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from os import dup2
from pathlib import Path

HOSTS = "hosts.txt"  # in the run's folder: the host of each process, in process order
BYTES = 256  # maximum length of a host name
ENDING = re.compile(r"[WEF]\d{4} \S+ +\d+ (coordination_|preemption_sync_|client\.h)")
FATAL = "distributed service detected fatal errors"
SILENT = re.compile(r"stopped sending heartbeats\):\s*((?:(?:\S*task:)?\d+[\s,]+)+)")


def watch(folder: Path) -> None:
    """From now on, pass this process's standard error through a reader process that outlives it."""
    _name_hosts(folder)
    command = [sys.executable, "-m", __name__, str(folder)]
    # in a session of its own, so that a keyboard interrupt does not end it
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert reader.stdin
    sys.stderr.flush()
    dup2(reader.stdin.fileno(), 2)


def _name_hosts(folder: Path) -> None:
    """Write the name of each process's host to the run's folder."""
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    own_name = np.frombuffer(platform.node().encode()[:BYTES].ljust(BYTES), np.uint8)
    names = [bytes(row).decode().strip() for row in np.asarray(multihost_utils.process_allgather(own_name))]
    if jax.process_index() == 0:
        (folder / HOSTS).write_text("\n".join(names) + "\n")


def filtered(lines: Iterable[str], folder: Path) -> Iterator[str]:
    """Yield the lines of a process, with one sentence instead of the stack trace with which JAX ends it."""
    stack: list[str] = []
    for line in lines:
        if stack or ENDING.match(line):
            stack.append(line)
        else:
            yield line
    text = "".join(stack)
    yield f"{_message(text, folder)}\n" if FATAL in text else text


def _message(text: str, folder: Path) -> str:
    """Return the sentence about the hosts that a stack trace reports as gone."""
    found = SILENT.search(text)
    # without a list of processes, process 0 itself is gone, through which the others learn of failures
    numbers = sorted({int(n) for n in re.findall(r"(\d+)[\s,]", found[1])}) if found else [0]
    names = (folder / HOSTS).read_text().splitlines() if (folder / HOSTS).exists() else []
    gone = " and ".join(f"process {n} ({names[n]})" if n < len(names) else f"process {n}" for n in numbers)
    steps = [int(path.name) for path in (folder / "checkpoints").glob("*") if path.name.isdecimal()]
    since = (
        f"resume from step {max(steps)}" if steps else "start from step 0, since no checkpoint was complete"
    )
    return (
        f"{gone} died or cannot be reached, so this process ends: read the log there, then start all "
        f"processes again with the same commands; they {since}"
    )


if __name__ == "__main__":
    sys.stdin.reconfigure(errors="replace")  # pyright: ignore
    for line in filtered(sys.stdin, Path(sys.argv[1])):
        print(line, end="", file=sys.stderr, flush=True)

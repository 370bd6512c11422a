"""Which host of a run has died, and what is to be done?

JAX ends all that are left, with a stack of its own. `watch(folder)` starts a reader of this process's
standard error: it hands on every line but that stack, and says one sentence in its place. Chapter: Training.
"""

import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from os import dup2
from pathlib import Path

HOSTS = "hosts.txt"  # in the run's folder: the name of each process's host, in their order
BYTES = 256  # room for one name
ENDING = re.compile(r"[WEF]\d{4} \S+ +\d+ (coordination_|preemption_sync_|client\.h)")
FATAL = "distributed service detected fatal errors"
SILENT = re.compile(r"stopped sending heartbeats\):\s*((?:(?:\S*task:)?\d+[\s,]+)+)")


def watch(folder: Path) -> None:
    """From now on, what this process writes to standard error goes through a reader that outlives it."""
    _name_hosts(folder)
    command = [sys.executable, "-m", __name__, str(folder)]
    # a session of its own: an interrupt at the keyboard is not for it
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert reader.stdin
    sys.stderr.flush()
    dup2(reader.stdin.fileno(), 2)


def _name_hosts(folder: Path) -> None:
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    mine = np.frombuffer(platform.node().encode()[:BYTES].ljust(BYTES), np.uint8)
    names = [bytes(row).decode().strip() for row in np.asarray(multihost_utils.process_allgather(mine))]
    if jax.process_index() == 0:
        (folder / HOSTS).write_text("\n".join(names) + "\n")


def handed_on(lines: Iterable[str], folder: Path) -> Iterator[str]:
    """The lines of a process, and in place of the stack with which JAX ends it the sentence."""
    held: list[str] = []
    for line in lines:
        if held or ENDING.match(line):
            held.append(line)
        else:
            yield line
    text = "".join(held)
    yield f"{_said(text, folder)}\n" if FATAL in text else text


def _said(text: str, folder: Path) -> str:
    found = SILENT.search(text)
    # who ends without a list has lost process 0 itself, through which the others hear of each other
    numbers = sorted({int(n) for n in re.findall(r"(\d+)[\s,]", found[1])}) if found else [0]
    names = (folder / HOSTS).read_text().splitlines() if (folder / HOSTS).exists() else []
    gone = " and ".join(f"process {n} ({names[n]})" if n < len(names) else f"process {n}" for n in numbers)
    steps = [int(path.name) for path in (folder / "checkpoints").glob("*") if path.name.isdecimal()]
    since = f"go on from step {max(steps)}" if steps else "begin anew, since no checkpoint was whole"
    return (
        f"{gone} died or cannot be reached, so this process ends: read the log there, then start all "
        f"processes again with the same commands; they {since}"
    )


if __name__ == "__main__":
    sys.stdin.reconfigure(errors="replace")  # pyright: ignore
    for said in handed_on(sys.stdin, Path(sys.argv[1])):
        print(said, end="", file=sys.stderr, flush=True)

"""What asks pytest for one run after another, each in a process of its own, and loads it only once?

`tools.alone` starts this file with the Python of an environment where the book's library is not. It reads one
question a line and answers each with a status. What a notebook's cells run in is begun anew by every run.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

BROKEN = 3  # pytest's own status for an error within it


class Warm:
    """A process in which pytest is loaded, of the Python that is given: loading alone takes two seconds."""

    def __init__(self, python: Path, variables: dict[str, str]) -> None:
        command = [python, "-P", Path(__file__).resolve()]  # -P: `tools` is no place to import from
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, text=True)
        atexit.register(self._process.communicate)  # with nothing more to ask it ends

    def ended(self, notebook: Path, variables: dict[str, str], arguments: list[str]) -> str:
        """Run a notebook where it lies, with these variables alone; what went wrong, or ''."""
        told = notebook.parents[1] / "told.txt"
        asked = {"folder": str(notebook.parent), "told": str(told), "variables": variables}
        asked |= {"arguments": [*arguments, notebook.name]}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline() or BROKEN)  # nothing: the process is no more
        return f"status {status}\n{told.read_text(encoding='utf-8')[-12_000:]}" if status else ""


def run(folder: str, told: str, variables: dict[str, str], arguments: list[str]) -> int:
    """Fork, and run pytest in a folder; what it says stands in the file `told`."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(file, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None  # found anew, from TMPDIR
    status = BROKEN
    try:
        status = int(import_module("pytest").main(arguments))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    for name in ("pytest", "nbval.plugin"):
        import_module(name)
    for line in sys.stdin:
        print(run(**json.loads(line)), flush=True)

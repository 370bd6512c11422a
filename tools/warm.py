"""What forks what a test asks for, a kernel or a run of pytest, from a process that has its modules loaded?

A kernel loads for three seconds, of which JAX takes two; there are hundreds. `python warm.py MODULE...` loads
once, reads one question a line and answers each; what is asked for is a process of its own, with the folder
and the variables that it is told. Standard library only: `tools.alone` runs it where nothing of ours is.
"""

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import IO, Any

BROKEN = 3  # pytest's own status for an error within it
LAUNCHER = "ipykernel_launcher"
FOR_KERNELS = (
    "ipykernel.kernelapp",
    "ipykernel.debugger",
    "ipykernel.zmqshell",
    "IPython.extensions.storemagic",
)
FOR_KERNELS += ("jupyter_client.localinterfaces", "numpy", "jax.numpy")
FOR_KERNELS += (str(Path(__file__).resolve().with_name("compiled") / "compile_cache.py"),)


class Asked:
    """The two ends of a pipe to a process that forks."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions, self._answers = questions, answers

    def answer(self, question: str, **told: Any) -> Any:
        """What the process says to a question; None where it is no more."""
        self._questions.write(json.dumps({"question": question, "told": told}) + "\n")
        self._questions.flush()
        return json.loads(self._answers.readline() or "null")

    def launch(self, command: Sequence[str], env: dict[str, str] | None = None, **how: Any) -> "Kernel":
        """What jupyter_client starts a kernel with, by a fork; its streams go where those of a fork go."""
        arguments = list(command[command.index(LAUNCHER) + 1 :])
        folder, variables = str(how.get("cwd") or Path.cwd()), dict(env or os.environ)
        return Kernel(self, self.answer("kernel", folder=folder, variables=variables, arguments=arguments))


class Kernel:
    """As much of a `Popen` as jupyter_client asks of a kernel that another process started."""

    stdin = stdout = stderr = None

    def __init__(self, asked: Asked, pid: int) -> None:
        self.asked, self.pid, self.returncode = asked, pid, None

    def poll(self) -> int | None:
        """Its status, None while it runs."""
        if self.returncode is None:
            self.returncode = self.asked.answer("status", pid=self.pid)
        return self.returncode

    def wait(self) -> int:
        """Its status, once it has ended."""
        while (status := self.poll()) is None:
            time.sleep(0.01)
        return status

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


class Warm(Asked):
    """A process of the Python that is given, in which modules are loaded."""

    def __init__(self, python: Path | str, modules: Sequence[str], variables: dict[str, str]) -> None:
        command = [python, "-P", Path(__file__).resolve(), *modules]  # -P: `tools` is no place to import from
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, text=True)
        assert process.stdin
        assert process.stdout
        super().__init__(process.stdin, process.stdout)
        self._process = process
        atexit.register(self.end)

    def end(self) -> None:
        """With nothing more to ask it ends, and its kernels with it."""
        self._questions.close()
        self._process.wait()

    def ended(self, notebook: Path, variables: dict[str, str], arguments: list[str]) -> str:
        """Run a notebook where it lies, with these variables alone; what went wrong, or ''."""
        told = notebook.parents[1] / "told.txt"
        where = {"folder": str(notebook.parent), "variables": variables, "told": str(told)}
        status = self.answer("pytest", arguments=[*arguments, notebook.name], **where)
        if status == 0:
            return ""
        return f"status {status}\n{told.read_text(encoding='utf-8')[-12_000:] if told.exists() else ''}"


def fork_kernels(asked: Callable[[], Asked] | None = None) -> None:
    """From now on every kernel of this process is a fork: of what is asked, or of a process of its own."""
    from_here = asked or functools.cache(lambda: Warm(sys.executable, FOR_KERNELS, dict(os.environ)))
    provisioner: Any = import_module("jupyter_client.provisioning.local_provisioner")
    provisioner.launch_kernel = lambda command, **how: from_here().launch(command, **how)


def kernel(folder: str, variables: dict[str, str], arguments: list[str]) -> int:
    """Fork a kernel; its process."""
    child = _forked()
    if child:
        os.setpgid(child, child)  # here, too: whoever asked may signal the group at once
        return child
    os.setpgid(0, 0)
    _become(folder, variables, os.devnull)
    # ipykernel has read whose child it is when it was loaded; with that process it shall end
    sys.argv = [LAUNCHER, *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    _left(import_module("ipykernel.kernelapp").launch_new_instance)
    return 0


def status(pid: int) -> int | None:
    """The status of a kernel, None while it runs."""
    ended, told = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(told) if ended else None


def pytest(folder: str, variables: dict[str, str], arguments: list[str], told: str) -> int:
    """Run pytest in a fork, and fork its kernels for it; its status. What it says is in the file `told`."""
    ours, its = socket.socketpair()
    child = _forked()
    if not child:
        ours.close()
        _become(folder, variables, told)
        outside = Asked(its.makefile("w"), its.makefile("r"))
        fork_kernels(lambda: outside)
        _left(lambda: import_module("pytest").main(arguments))
    its.close()
    with ours, ours.makefile("r") as questions, ours.makefile("w") as answers:
        serve(questions, answers)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _forked() -> int:
    with warnings.catch_warnings():  # JAX warns of its threads, and has none before it is used
        warnings.simplefilter("ignore")
        return os.fork()


def _become(folder: str, variables: dict[str, str], told: str) -> None:
    said = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(file, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None  # found anew, from TMPDIR


def _left(call: Any) -> None:
    """End this fork with what a call returns."""
    status: Any = BROKEN
    try:
        status = call()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status or 0))


KNOWN = {"kernel": kernel, "status": status, "pytest": pytest}


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Answer until nobody asks."""
    for line in questions:
        asked = json.loads(line)
        print(json.dumps(KNOWN[asked["question"]](**asked["told"])), file=answers, flush=True)


def _loaded(file: Path) -> None:
    spec: Any = spec_from_file_location(file.stem, file)
    sys.modules[file.stem] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        _loaded(Path(name)) if name.endswith(".py") else import_module(name)
    serve(sys.stdin, sys.stdout)

"""A fork server that starts kernels and pytest runs from a process with their modules already imported.

A kernel imports for three seconds, two of them JAX, and tests start hundreds. `python kernel_forkserver.py
MODULE...` imports once, then reads one JSON request per line and writes one response each; every kernel is a
separate process with its own folder and environment. Standard library only, because `tools.isolated_run` runs
it in environments without the project.
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

PYTEST_INTERNAL_ERROR = 3  # pytest's exit status for an internal error
LAUNCHER = "ipykernel_launcher"
KERNEL_MODULES = (
    "ipykernel.kernelapp",
    "ipykernel.debugger",
    "ipykernel.zmqshell",
    "IPython.extensions.storemagic",
)
KERNEL_MODULES += ("jupyter_client.localinterfaces", "numpy", "jax.numpy")
KERNEL_MODULES += (str(Path(__file__).resolve().with_name("compiled") / "compile_cache.py"),)


class ForkClient:
    """A connection to a fork server: a stream of requests and a stream of responses."""

    def __init__(self, requests: IO[str], responses: IO[str]) -> None:
        self._requests, self._responses = requests, responses

    def request(self, question: str, **told: Any) -> Any:
        """The server's response to a request, or None if the server has ended."""
        self._requests.write(json.dumps({"question": question, "told": told}) + "\n")
        self._requests.flush()
        return json.loads(self._responses.readline() or "null")

    def launch(self, command: Sequence[str], env: dict[str, str] | None = None, **how: Any) -> "Kernel":
        """The replacement for jupyter_client's kernel launcher, which starts a kernel by a fork."""
        arguments = list(command[command.index(LAUNCHER) + 1 :])
        folder, variables = str(how.get("cwd") or Path.cwd()), dict(env or os.environ)
        return Kernel(self, self.request("kernel", folder=folder, variables=variables, arguments=arguments))


class Kernel:
    """The part of the `Popen` interface that jupyter_client uses, for a kernel in another process."""

    stdin = stdout = stderr = None

    def __init__(self, server: ForkClient, pid: int) -> None:
        self.server, self.pid, self.returncode = server, pid, None

    def poll(self) -> int | None:
        """The exit status, or None while the kernel runs."""
        if self.returncode is None:
            self.returncode = self.server.request("status", pid=self.pid)
        return self.returncode

    def wait(self) -> int:
        """Wait for the kernel to end and return its exit status."""
        while (status := self.poll()) is None:
            time.sleep(0.01)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal unless the kernel has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the kernel."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the kernel to end."""
        self.send_signal(signal.SIGTERM)


class KernelForkserver(ForkClient):
    """A fork server of a given Python with preloaded modules."""

    def __init__(self, python: Path | str, modules: Sequence[str], variables: dict[str, str]) -> None:
        command = [python, "-P", Path(__file__).resolve(), *modules]  # -P: do not import from `tools`
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, text=True)
        assert process.stdin
        assert process.stdout
        super().__init__(process.stdin, process.stdout)
        self._process = process
        atexit.register(self.end)

    def end(self) -> None:
        """End the server, and with it its kernels."""
        self._requests.close()
        self._process.wait()

    def run_failure(self, notebook: Path, variables: dict[str, str], arguments: list[str]) -> str:
        """Run a notebook where it is with these variables, and return what went wrong, or ""."""
        told = notebook.parents[1] / "told.txt"
        where = {"folder": str(notebook.parent), "variables": variables, "told": str(told)}
        status = self.request("pytest", arguments=[*arguments, notebook.name], **where)
        if status == 0:
            return ""
        return f"status {status}\n{told.read_text(encoding='utf-8')[-12_000:] if told.exists() else ''}"


def fork_kernels(server: Callable[[], ForkClient] | None = None) -> None:
    """Let every kernel of this process be forked, by the given server or by one of its own."""
    from_here = server or functools.cache(
        lambda: KernelForkserver(sys.executable, KERNEL_MODULES, dict(os.environ))
    )
    provisioner: Any = import_module("jupyter_client.provisioning.local_provisioner")
    provisioner.launch_kernel = lambda command, **how: from_here().launch(command, **how)


def kernel(folder: str, variables: dict[str, str], arguments: list[str]) -> int:
    """Fork a kernel and return its process id."""
    child = _fork_quietly()
    if child:
        os.setpgid(child, child)  # set here too, because the group may be signalled at once
        return child
    os.setpgid(0, 0)
    _replace_environment(folder, variables, os.devnull)
    # ipykernel read its parent's id when it was imported; it must end with this process instead
    sys.argv = [LAUNCHER, *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    _exit_with(import_module("ipykernel.kernelapp").launch_new_instance)
    return 0


def status(pid: int) -> int | None:
    """The exit status of a kernel, or None while it runs."""
    ended, told = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(told) if ended else None


def pytest(folder: str, variables: dict[str, str], arguments: list[str], told: str) -> int:
    """Run pytest in a fork and serve its kernels; returns its status. Its output goes to the file `told`."""
    ours, its = socket.socketpair()
    child = _fork_quietly()
    if not child:
        ours.close()
        _replace_environment(folder, variables, told)
        outside = ForkClient(its.makefile("w"), its.makefile("r"))
        fork_kernels(lambda: outside)
        _exit_with(lambda: import_module("pytest").main(arguments))
    its.close()
    with ours, ours.makefile("r") as requests, ours.makefile("w") as responses:
        serve(requests, responses)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _fork_quietly() -> int:
    with warnings.catch_warnings():  # JAX warns about its threads, of which there are none yet
        warnings.simplefilter("ignore")
        return os.fork()


def _replace_environment(folder: str, variables: dict[str, str], told: str) -> None:
    said = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(file, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None  # determined again from TMPDIR


def _exit_with(call: Any) -> None:
    """End this fork with the status that a call returns."""
    status: Any = PYTEST_INTERNAL_ERROR
    try:
        status = call()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status or 0))


HANDLERS = {"kernel": kernel, "status": status, "pytest": pytest}


def serve(requests: IO[str], responses: IO[str]) -> None:
    """Serve requests until the stream ends."""
    for line in requests:
        asked = json.loads(line)
        print(json.dumps(HANDLERS[asked["question"]](**asked["told"])), file=responses, flush=True)


def _load_file(file: Path) -> None:
    spec: Any = spec_from_file_location(file.stem, file)
    sys.modules[file.stem] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        _load_file(Path(name)) if name.endswith(".py") else import_module(name)
    serve(sys.stdin, sys.stdout)

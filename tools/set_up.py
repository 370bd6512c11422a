"""How is .venv set up? `tools/setup.sh` finds a Python and runs this with it.

An environment cannot be moved, so each is built where it stays, in `.venvs/1`, `.venvs/2` and so on, and
`.venv` is a link. It is switched in one step, and only to an environment that is complete: whatever happens
before, a kill too, leaves what was there. The environment of before stays until the next switch, for what
still runs in it, and is taken again where its lock comes back. `.venvs/0` is a `.venv` that was a folder; one
that no set-up made is never removed.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV, VENVS = ROOT / ".venv", ROOT / ".venvs"
FOLDER, LINK = VENVS / "0", VENVS / "link"
LAYERS = {
    "book": ["--extra", "viz", "--extra", "cli", "--group", "site"],
    "test": ["--all-extras", "--all-groups"],
}
AS_IT_WAS = "; .venv is as it was"


def say(sentence: str) -> None:
    print(f"==> {sentence}", file=sys.stderr, flush=True)


def digest() -> str:
    """What an environment depends on: the lock, what of this tree is installed, its place and its Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    tools = project.pop("tool", {})
    installed = json.dumps([project, tools.get("uv"), tools.get("hatch"), sys.version_info[:2]], default=str)
    files = (ROOT / "uv.lock", ROOT / ".python-version", Path(__file__))
    parts = (installed.encode(), os.fsencode(ROOT), *(path.read_bytes() for path in files))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def check(environment: str, layer: str) -> bool:
    """Has this environment, whose Python is asked, all that this tree wants in it today?"""
    stamp = Path(environment, f".set-up-{layer}")
    return os.access(Path(environment, "bin/uv"), os.X_OK) and stamp.read_text() == digest()


def succeeds(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def up_to_date(environment: Path, layer: str) -> bool:
    return succeeds(environment / "bin/python", "-IS", __file__, "check", environment, layer)


def run(problem: str, *command: str | Path, **variables: str) -> None:
    """Run a command; where it fails, say what that means, and stop."""
    done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, stdout=sys.stderr, close_fds=False)
    if done.returncode:
        left = shutil.disk_usage(VENVS).free // 1_000_000
        room = f"; only {left} MB are left for {VENVS}" if left < 2500 else ""  # all layers take 2000
        sys.exit(f"set-up: {problem}{room}{AS_IT_WAS}")


def wait() -> None:
    """Until no other set-up is at work; what this one starts holds the lock too, and may outlive it."""
    VENVS.mkdir(exist_ok=True)
    lock = os.open(VENVS / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    os.set_inheritable(lock, True)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("waiting for another set-up")
        fcntl.flock(lock, fcntl.LOCK_EX)


def environments() -> list[Path]:
    return [path for path in VENVS.iterdir() if path.name.isdigit()]


def current() -> Path:
    """The environment that .venv is; where it is no link, what it would become."""
    try:
        return VENVS / Path(os.readlink(VENV)).name
    except OSError:
        return FOLDER


def complete(environment: Path) -> bool:
    return (environment / ".set-up-book").exists()


def discard(environment: Path) -> None:
    """Remove an environment, its stamps first: half of one must not look whole."""
    for stamp in environment.glob(".set-up-*"):
        stamp.unlink()
    shutil.rmtree(environment, ignore_errors=True)


def built_before(layer: str) -> Path | None:
    """The one of before where it is what is asked for; none for a reader who removed .venv to begin anew."""
    others = [path for path in environments() if path != current() and os.path.lexists(VENV)]
    return next((path for path in others if up_to_date(path, layer)), None)


def build(layer: str, python: str) -> Path:
    """A new environment, with all the layers that the one of before has."""
    made_from = digest()  # the lock may change meanwhile
    for path in environments():
        if not complete(path) and path not in (current(), FOLDER):  # a set-up was killed here
            discard(path)
    new = VENVS / str(1 + max((int(path.name) for path in environments()), default=0))
    try:
        layer = "test" if (VENV / ".set-up-test").exists() else layer
        fill(new, layer, python)
        for held in ["book", "test"][: 1 + (layer == "test")]:  # all layers hold the book's too
            (new / f".set-up-{held}").write_text(made_from)
    except BaseException:
        discard(new)
        raise
    return new


def pin(name: str) -> str:
    """What uv.lock says of a package, as pip reads it: its version, and the digest of each of its files."""
    every = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]
    package = next(one for one in every if one["name"] == name)
    return " --hash=".join([f"{name}=={package['version']}", *(file["hash"] for file in package["wheels"])])


def fill(new: Path, layer: str, python: str) -> None:
    """Make the environment, bring uv into it, and let uv bring in the lock."""
    say(f"making .venv with {python}")
    run(f"{python} could not make a virtual environment", python, "-m", "venv", "--prompt", ".venv", new)
    for script in new.glob("bin/[aA]ctivate*"):  # a shell that is in .venv stays in it when it is switched
        script.write_bytes(script.read_bytes().replace(os.fsencode(new), os.fsencode(VENV)))
    if succeeds(VENV / "bin/uv", "--version"):
        shutil.copy2(VENV / "bin/uv", new / "bin/uv")
    else:
        say("bringing uv into .venv")
        pinned = new / "uv.txt"
        pinned.write_text(pin("uv"))
        install = (new / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", pinned)
        run("pip could not install the uv that uv.lock pins from a package index", *install)
    say(f"installing what uv.lock pins for '{layer}' (the first time takes minutes)")
    sync = (new / "bin/uv", "sync", "--frozen", "--inexact", "--python", new / "bin/python", *LAYERS[layer])
    problem = "uv could not install what uv.lock pins; its message is above"
    run(problem, *sync, UV_PROJECT_ENVIRONMENT=str(new))


def switch(new: Path) -> None:
    """Let .venv be this environment, and remove what is neither this nor the one of before."""
    kept = current(), new
    LINK.unlink(missing_ok=True)
    LINK.symlink_to(new.relative_to(ROOT))
    if VENV.is_dir() and not VENV.is_symlink():
        say("keeping what was .venv as .venvs/0")
        shutil.rmtree(FOLDER, ignore_errors=True)
        VENV.rename(FOLDER)  # a kill between this step
    LINK.replace(VENV)  # and this is mended by the next run
    for path in environments():
        if path not in kept and (complete(path) or path != FOLDER):
            discard(path)


def main(layer: str, python: str) -> None:
    """Set up .venv with a layer, beginning with a Python that was found."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        wait()
        if LINK.is_symlink() and FOLDER.exists() and not os.path.lexists(VENV):
            FOLDER.rename(VENV)
        if not up_to_date(VENV, layer):
            switch(built_before(layer) or build(layer, python))
    except OSError as error:
        sys.exit(f"set-up: {error.filename or VENVS}: {error.strerror}{AS_IT_WAS}")
    except ValueError as error:
        sys.exit(f"set-up: pyproject.toml cannot be read: {error}{AS_IT_WAS}")
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)


if __name__ == "__main__":
    action, *arguments = sys.argv[1:]
    sys.exit(not check(*arguments) if action == "check" else main(*arguments))

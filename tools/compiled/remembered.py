"""What did the TPU compiler say of this program? It is asked again only where program or compiler is another.

The compiler says the same of the same program, to the byte and on every machine, and asking it for the same
hundred programs took most of the tests' time. What it says is kept by a digest of all that it is given and of
its version. One program in sixteen, others after each commit, is compiled all the same and compared;
`ASK=0123456789abcdef make test` compares all. Whoever asks a program for more than is kept here has it
compiled.

To keep what is not kept yet, `REMEMBER=1 make tests alone`; to forget what nothing asks for any more, remove
the table before. JAX and the standard library only: kernels load this file where nothing of ours is.
"""

import base64
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax

TABLE = Path(__file__).with_suffix(".txt")  # a program a line: its digest, what was said
KEY = 32
LEAST_S = 0.7  # of the processor, which asking takes at least of what is kept
SETTINGS = (
    "jax_disable_most_optimizations",
    "jax_optimization_level",
    "jax_memory_fitting_level",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
)
# Where on this machine an instruction was written: two lines of a head, and a number in each instruction.
_FRAMES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d.*\n)*\n*", re.MULTILINE)
_FRAME = re.compile(
    r" stack_frame_id=\d+| source_(?:file|line|end_line|column|end_column)=(?:\"[^\"]*\"|\d+)"
)


# `#loc7 = loc("jit(f)/up/tanh"(#loc3))` names what ends with `loc(#loc7)`; an argument says `loc("x")`.
_NAME = re.compile(r'^(#loc\d*) = loc\("([^"]*)"\(')
_PLACE = re.compile(r'\s*loc\((?:(#loc\d*)|"([^"]*)"|[^()]*)\)')


class Said:
    """A compiled program, as far as what was said of it is kept; for the rest it is compiled after all."""

    def __init__(self, kept: dict[str, Any], lowered: Any, asked: dict[str, Any]) -> None:
        self._kept, self._lowered, self._asked = kept, lowered, asked

    def as_text(self) -> str:
        return self._kept["text"]

    def memory_analysis(self) -> Any:
        return SimpleNamespace(**self._kept["memory"])

    def cost_analysis(self) -> dict[str, float]:
        return self._kept["cost"]

    @property
    def output_shardings(self) -> Any:
        return (SimpleNamespace(device_set=set(_devices(self._lowered))),)  # which devices, and not how

    @functools.cached_property
    def _compiled(self) -> Any:
        return _compile(self._lowered, **self._asked)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._compiled, name)


_compile = jax.stages.Lowered.compile


def compile(lowered: Any, compiler_options: Any = None, **more: Any) -> Any:
    """What takes the place of `jax.stages.Lowered.compile`."""
    asked = {"compiler_options": compiler_options, **more}
    devices = _devices(lowered)
    if not devices or devices[0].platform != "tpu" or any(more.values()):
        return _compile(lowered, **asked)
    key = digest(lowered, compiler_options)
    if kept := recalled(key):
        return _handed(kept, lowered, asked)
    started = time.process_time()
    found = _answered(lowered, asked)
    if key in _kept() or time.process_time() - started > LEAST_S:
        confirm(key, _said(found))
    if isinstance(found, Exception):
        raise found
    return found


def answer(key: str, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is kept under a key; where nothing is, or its turn has come, what is asked for now."""
    return recalled(key) or confirm(key, ask())


def recalled(key: str) -> dict[str, Any] | None:
    """What is kept under a key, if it is not its turn to be asked again."""
    kept = _kept().get(key)
    return _read(kept) if kept and key[0] not in os.environ.get("ASK", _of_this_commit()) else None


@functools.cache
def _of_this_commit() -> str:
    """Its first digit, or nothing where there is no repository and no git."""
    if not shutil.which("git"):
        return ""
    command = ["git", "-C", str(TABLE.parent), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout[:1]


def confirm(key: str, said: dict[str, Any]) -> dict[str, Any]:
    """It is what was kept, or it is kept from now on where that is asked for."""
    kept = _kept().get(key)
    if kept and said != _read(kept):
        raise AssertionError(f"the TPU compiler says something else of a program than is kept as {key}")
    if os.environ.get("REMEMBER") and not kept:
        _keep(key, said)
    return said


def digest(lowered: Any, options: Any = None) -> str:
    """Of all that the compiler is given: the program with its shardings, for which devices, and how."""
    devices = _devices(lowered)
    told = [
        *_named(lowered.as_text(debug_info=True)),
        *(f"{d.device_kind} {d!r}" for d in devices),
        len(devices[0].client.devices()),
    ]
    told += [options, getattr(lowered._lowering, "_compiler_options_kvs", None)]
    told += [jax.__version__, metadata.version("libtpu"), os.environ.get("LIBTPU_INIT_ARGS")]
    told += [jax.config.values.get(name) for name in SETTINGS]
    return hashlib.sha256("\n".join(map(str, told)).encode()).hexdigest()[:KEY]


def _named(text: str) -> Iterator[str]:
    """A program's lines with the name of each operation, which the compiler hands on, and no place."""
    lines = text.splitlines()
    names = {m[1]: m[2] for m in map(_NAME.match, lines) if m}
    for line in lines:
        if not line.startswith("#loc"):
            yield _PLACE.sub(lambda place: f" {names.get(place[1], place[2] or '')}", line)


def _devices(lowered: Any) -> tuple[Any, ...]:
    """The devices in the order of the program's; () where this JAX keeps them elsewhere."""
    given = getattr(lowered, "_lowering", None)
    listed = getattr(given, "_device_list", None) or getattr(given, "compile_args", {}).get(
        "device_assignment"
    )
    return tuple(listed or ())


def _answered(lowered: Any, asked: dict[str, Any]) -> Any:
    try:
        return _compile(lowered, **asked)
    except jax.errors.JaxRuntimeError as refused:
        return refused


def _said(found: Any) -> dict[str, Any]:
    """Everything of it that is kept, without this machine's paths."""
    if isinstance(found, Exception):
        return {"refused": _placeless(str(found))}
    memory = found.memory_analysis()
    figures = {name: getattr(memory, name) for name in dir(memory) if name.endswith("_in_bytes")}
    return {"text": _placeless(found.as_text()), "memory": figures, "cost": dict(found.cost_analysis() or {})}


def _placeless(text: str) -> str:
    return _FRAME.sub("", _FRAMES.sub("", text))


def _handed(said: dict[str, Any], lowered: Any, asked: dict[str, Any]) -> Said:
    if "refused" in said:
        raise jax.errors.JaxRuntimeError(said["refused"])
    return Said(said, lowered, asked)


@functools.cache
def _kept() -> dict[str, str]:
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return {line[:KEY]: line[KEY + 1 :] for line in lines}


def _read(line: str) -> dict[str, Any]:
    return json.loads(zlib.decompress(base64.b64decode(line)))


def _keep(key: str, said: dict[str, Any]) -> None:
    """Put it where it stands in order; another process may do so at the same time."""
    packed = base64.b64encode(zlib.compress(json.dumps(said, sort_keys=True).encode(), 9)).decode()
    with TABLE.open("a+") as table:
        fcntl.flock(table, fcntl.LOCK_EX)
        table.seek(0)
        lines = {line[:KEY]: line for line in table.read().splitlines()}
        lines[key] = f"{key} {packed}"
        table.truncate(0)
        table.write("".join(f"{line}\n" for _, line in sorted(lines.items())))


setattr(jax.stages.Lowered, "compile", compile)  # noqa: B010
_kept()  # read once, before kernels are forked

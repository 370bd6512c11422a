"""A compile cache for the TPU compiler: it returns stored results instead of compiling a program again.

Compiling the same few hundred programs took most of the tests' time, although the compiler is deterministic:
the same program gives the same result on every machine. `compile_cache.txt` therefore stores the result of
every program that is slow to compile, under a digest of everything the compiler is given: the program, the
devices, the options and the versions. Source locations enter neither the digest nor the result, so a result
depends neither on where the code is nor on what ran earlier in the process. Whatever else is asked of a
cached program, such as its input shardings, compiles it.

The environment variable COMPILE_CACHE selects what happens to a program that the cache holds or lacks:

    read      use the stored result; compile what is not stored (the default)
    compare   compile every program, and fail if the result differs from the stored one
    record    as read, and store the result of what had to be compiled

To rebuild the cache, delete `compile_cache.txt` and run the tests with COMPILE_CACHE=record. The module needs
only JAX and the standard library, because notebook kernels load this file without the rest of the project.
"""

import base64
import fcntl
import functools
import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax

TABLE = Path(__file__).with_suffix(".txt")  # one program per line: its digest, its compressed result
KEY_LENGTH = 32
MIN_COMPILE_S = 0.7  # CPU time; programs that compile faster are not stored
MODES = ("read", "compare", "record")
COMPILER_SETTINGS = (
    "jax_disable_most_optimizations",
    "jax_optimization_level",
    "jax_memory_fitting_level",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
)

# HLO: tables in front of a module, and the fields of an instruction's metadata that point into them.
_LOCATION_TABLES = re.compile(
    r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d.*\n)*\n*", re.MULTILINE
)
_LOCATION_FIELDS = {
    "stack_frame_id",
    "source_file",
    "source_line",
    "source_end_line",
    "source_column",
    "source_end_column",
}
_QUOTED = r'"(?:\\.|[^"\\])*"'
_METADATA = re.compile(rf'(,? ?)metadata=\{{((?:[^{{}}"]++|{_QUOTED}|\{{[^{{}}]*\}})*)\}}')
_FIELD = re.compile(rf"(\w+)=(?:{_QUOTED}|\{{[^{{}}]*\}}|[^\s{{}}\"]+)")
# Error messages quote the fields without braces. A Pallas kernel has its locations in its configuration,
# which is JSON, and StableHLO quotes that once more.
_BARE_FIELDS = re.compile(
    rf"(Operator:|op_name={_QUOTED})(?: (?:{'|'.join(sorted(_LOCATION_FIELDS))})=(?:{_QUOTED}|\d+))+"
)
_KERNEL_LOCATIONS = re.compile(r',? ?(\\22|")debug_locations\1: ?\1[^"\\]*\1')

# StableHLO: `#loc7 = loc("jit(f)/up/tanh"(#loc3))` defines the name that a line ending in `loc(#loc7)` has;
# an argument says `loc("x")`, or `loc("add"(#loc3))` where an operation has a region.
_NAMED_LOCATION = re.compile(r'^(#loc\d*) = loc\("([^"]*)"\(')
_INNER = r"""(?:"[^"]*"|[^()"])*"""
_LOCATION = re.compile(
    rf'\s*loc\((?:(#loc\d*)|"([^"]*)"(?:\({_INNER}\))?|{_INNER}(?:\({_INNER}\){_INNER})*)\)'
)


class CachedExecutable:
    """A compiled program whose stored results are returned; anything else compiles the program on demand."""

    def __init__(self, entry: dict[str, Any], lowered: Any, options: dict[str, Any]) -> None:
        self._entry, self._lowered, self._options = entry, lowered, options

    def as_text(self) -> str:
        """Return the optimized HLO, without source locations."""
        return self._entry["text"]

    def memory_analysis(self) -> Any:
        """Return the sizes that the compiler reports, as attributes."""
        return SimpleNamespace(**self._entry["memory"])

    def cost_analysis(self) -> dict[str, float]:
        """Return the compiler's own estimates."""
        return self._entry["cost"]

    @property
    def output_shardings(self) -> Any:
        """A stand-in that knows only the devices."""
        return (SimpleNamespace(device_set=set(_devices(self._lowered))),)

    @functools.cached_property
    def _compiled(self) -> Any:
        return _compile(self._lowered, **self._options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._compiled, name)


_compile = jax.stages.Lowered.compile


def compile(lowered: Any, compiler_options: Any = None, **more: Any) -> Any:
    """Replace `jax.stages.Lowered.compile`."""
    options = {"compiler_options": compiler_options, **more}
    devices = _devices(lowered)
    if not devices or devices[0].platform != "tpu" or any(more.values()):
        return _compile(lowered, **options)
    if not (key := digest(lowered, compiler_options)):
        return _compile(lowered, **options)
    entry = lookup(key)
    if entry and mode() != "compare":
        return _executable(entry, lowered, options)
    started = time.process_time()
    result = _result(lowered, options)
    if entry or time.process_time() - started > MIN_COMPILE_S:
        update(key, _entry(result))
    if isinstance(result, Exception):
        raise result
    return result


def cached(key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the entry stored under a key; it is computed if missing, and in the mode `compare`."""
    entry = lookup(key)
    if entry and mode() != "compare":
        return entry
    return update(key, compute())


def mode() -> str:
    """Return the mode that COMPILE_CACHE selects."""
    selected = os.environ.get("COMPILE_CACHE") or "read"
    if selected not in MODES:
        raise ValueError(f"COMPILE_CACHE={selected}: choose one of {', '.join(MODES)}")
    return selected


def lookup(key: str) -> dict[str, Any] | None:
    """Return the entry stored under a key, or None."""
    packed = _table().get(key)
    return json.loads(zlib.decompress(base64.b64decode(packed))) if packed else None


def update(key: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Compare a new result with the stored one; if there is none, store it in the mode `record`."""
    stored = lookup(key)
    if stored and entry != stored:
        raise AssertionError(
            f"the TPU compiler's result for a program differs from entry {key} of {TABLE.name}"
        )
    if not stored and mode() == "record":
        store(key, entry)
    return entry


def store(key: str, entry: dict[str, Any]) -> None:
    """Write an entry to the sorted table; other processes may write at the same time."""
    packed = base64.b64encode(zlib.compress(json.dumps(entry, sort_keys=True).encode(), 9)).decode()
    with TABLE.open("a+") as table:
        fcntl.flock(table, fcntl.LOCK_EX)
        table.seek(0)
        lines = {line[:KEY_LENGTH]: line for line in table.read().splitlines()}
        lines[key] = f"{key} {packed}"
        table.truncate(0)
        table.write("".join(f"{line}\n" for _, line in sorted(lines.items())))


def digest(lowered: Any, options: Any = None) -> str:
    """Return a digest of the compiler's input: the program with its shardings, the devices, options and
    versions.

    It is "" for a program with a Pallas kernel if libtpu is older than 0.0.50: JAX then writes locations into
    the kernel's bytecode, so the same program has another digest in each process.
    """
    devices, text = _devices(lowered), lowered.as_text(debug_info=True)
    if "@tpu_custom_call" in text and not _KERNEL_LOCATIONS.search(text):
        return ""
    inputs = [
        *_without_locations(text),
        *(f"{d.device_kind} {d!r}" for d in devices),
        len(devices[0].client.devices()),
    ]
    inputs += [options, getattr(lowered._lowering, "_compiler_options_kvs", None)]
    inputs += [jax.__version__, metadata.version("libtpu"), os.environ.get("LIBTPU_INIT_ARGS")]
    inputs += [jax.config.values.get(name) for name in COMPILER_SETTINGS]
    return hashlib.sha256("\n".join(map(str, inputs)).encode()).hexdigest()[:KEY_LENGTH]


def normalize(text: str) -> str:
    """Return HLO text, or an error message, without source locations; `op_name` stays, because readers use
    it.
    """
    text = _METADATA.sub(_kept_metadata, _LOCATION_TABLES.sub("", text))
    return _KERNEL_LOCATIONS.sub("", _BARE_FIELDS.sub(r"\1", text))


def _kept_metadata(found: re.Match[str]) -> str:
    fields = [field[0] for field in _FIELD.finditer(found[2]) if field[1] not in _LOCATION_FIELDS]
    return f"{found[1]}metadata={{{' '.join(fields)}}}" if fields else ""


def _without_locations(text: str) -> Iterator[str]:
    """Yield the lines of a StableHLO program with the operations' names, which the compiler passes on."""
    lines = text.splitlines()
    names = {m[1]: m[2] for m in map(_NAMED_LOCATION.match, lines) if m}
    for line in lines:
        if not line.startswith("#loc"):
            named = _LOCATION.sub(lambda place: f" {names.get(place[1], place[2] or '')}", line)
            yield _KERNEL_LOCATIONS.sub("", named)


def _devices(lowered: Any) -> tuple[Any, ...]:
    """Return the devices in the program's order, or () if this version of JAX keeps them elsewhere."""
    lowering = getattr(lowered, "_lowering", None)
    listed = getattr(lowering, "_device_list", None) or getattr(lowering, "compile_args", {}).get(
        "device_assignment"
    )
    return tuple(listed or ())


def _result(lowered: Any, options: dict[str, Any]) -> Any:
    """Return the compiled program, or the compiler's error."""
    try:
        return _compile(lowered, **options)
    except jax.errors.JaxRuntimeError as refusal:
        return refusal


def _entry(result: Any) -> dict[str, Any]:
    """Return what the cache stores of a result."""
    if isinstance(result, Exception):
        return {"refused": normalize(str(result))}
    memory = result.memory_analysis()
    sizes = {name: getattr(memory, name) for name in dir(memory) if name.endswith("_in_bytes")}
    return {
        "text": normalize(result.as_text()),
        "memory": sizes,
        "cost": dict(result.cost_analysis() or {}),
    }


def _executable(entry: dict[str, Any], lowered: Any, options: dict[str, Any]) -> CachedExecutable:
    if "refused" in entry:
        raise jax.errors.JaxRuntimeError(entry["refused"])
    return CachedExecutable(entry, lowered, options)


@functools.cache
def _table() -> dict[str, str]:
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return {line[:KEY_LENGTH]: line[KEY_LENGTH + 1 :] for line in lines}


setattr(jax.stages.Lowered, "compile", compile)  # noqa: B010

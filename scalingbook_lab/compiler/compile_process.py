"""Compile a function in another process, which receives its code and the modules and values that it refers
to.

The compiler dumps a TPU's instructions only if its flags were set before it started, and a machine with a TPU
may need another libtpu to compile with than the one that the TPU runs on.
`python -m scalingbook_lab.compiler.compile_process` is such a process: it reads the function from standard
input and compiles it.
"""

import builtins
import importlib
import marshal
import os
import pickle
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalingbook_lab import devices
from scalingbook_lab.compiler import slices

MODULE, FUNCTION, VALUE = "module", "function", "value"


def pack(fn: Callable, packing: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return a function as plain values: its code, and the values that its code refers to.

    Raises TypeError if the function is not written in Python, is recursive, or refers to something that
    cannot be pickled. `packing` holds the functions that are currently being packed.
    """
    # pickle stores a function by reference to its module, so it cannot take one from a notebook or a lambda.
    # `marshal` stores the code itself, which works because both processes run the same Python.
    function = getattr(fn, "__wrapped__", fn)
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"{fn!r} is not written in Python; give a function that calls it")
    if function in packing:
        raise TypeError(f"{function.__name__} calls itself; give a function that does not")
    inner = (*packing, function)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = {
        name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__
    }
    return {
        "name": function.__name__,
        "code": marshal.dumps(function.__code__),
        "globals": {name: _pack_value(name, value, inner) for name, value in names.items()},
        "cells": [_pack_value(name, cell.cell_contents, inner) for name, cell in cells],
        "defaults": [_pack_value("a default", value, inner) for value in function.__defaults__ or ()],
        "keywords": {n: _pack_value(n, value, inner) for n, value in (function.__kwdefaults__ or {}).items()},
    }


def unpack(packed_function: dict[str, Any]) -> Callable:
    """Return the function that `pack` packed."""
    namespace = {name: _unpack_value(value) for name, value in packed_function["globals"].items()}
    cells = tuple(types.CellType(_unpack_value(value)) for value in packed_function["cells"])
    defaults = tuple(_unpack_value(value) for value in packed_function["defaults"])
    code = marshal.loads(packed_function["code"])
    fn = types.FunctionType(
        code,
        namespace | {"__name__": "stack", "__builtins__": builtins},
        packed_function["name"],
        defaults,
        cells,
    )
    fn.__kwdefaults__ = {name: _unpack_value(value) for name, value in packed_function["keywords"].items()}
    return fn


def _pack_value(name: str, value: Any, packing: tuple[Any, ...]) -> tuple[str, Any]:
    """Return a value that a function refers to, with the way in which it is packed."""
    if isinstance(value, types.ModuleType):
        return MODULE, value.__name__
    if isinstance(getattr(value, "__wrapped__", value), types.FunctionType):
        module = getattr(value, "__module__", "__main__")
        if module.partition(".")[0] in (
            "jax",
            "scalingbook_lib",
        ):  # installed in the other process too, so the name is enough
            return VALUE, pickle.dumps(value)
        return FUNCTION, pack(value, packing)
    try:
        return VALUE, pickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"{name} cannot be taken to another process ({error}); pass numbers, shapes and types"
        ) from error


def _unpack_value(packed_value: tuple[str, Any]) -> Any:
    """Return the value that `_pack_value` packed."""
    how_packed, value = packed_value
    if how_packed == MODULE:
        return importlib.import_module(value)
    return unpack(value) if how_packed == FUNCTION else pickle.loads(value)


def _names(code: types.CodeType) -> set[str]:
    """Return every name that a function, or a function nested in it, may look up outside."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def environment(folder: Path | None) -> dict[str, str]:
    """Return the variables of a child process that compiles, with the libtpu in a folder if one is given.

    With such a folder, the child process uses no TPU of this machine.
    """
    if folder is None:
        return dict(os.environ)
    paths = [str(folder), *(path for path in sys.path if path)]
    return os.environ | devices.WITHOUT_TPU | {"PYTHONPATH": os.pathsep.join(paths)}


def compile_aside(folder: Path, fn: Callable, args: tuple, how: dict[str, Any]) -> Any:
    """Return what `aot.portable` returns in a child process with the libtpu in that folder.

    Raises NoTpuCompiler if the function or its arguments cannot be sent to the process, or if it fails, and
    whatever error compiling raises there.
    """
    try:
        job = pickle.dumps({"fn": pack(fn), "args": args, "how": how, "portable": True})
    except Exception as error:
        raise slices.NoTpuCompiler(f"another process must compile this, and it cannot: {error}") from error
    with tempfile.TemporaryDirectory(prefix="compiled-") as home:
        answer = Path(home, "answer")
        command = [sys.executable, "-m", __name__, str(answer)]
        done = subprocess.run(command, input=job, env=environment(folder), capture_output=True, check=False)
        if not answer.exists():
            failed = "the process that compiles for TPUs failed"
            raise slices.NoTpuCompiler(f"{failed}: {_last_error(done.stderr)}")
        found = pickle.loads(answer.read_bytes())
    if isinstance(found, Exception):
        raise found
    return found


def _last_error(stderr: bytes) -> str:
    """Return the last line that names an error, or the last line; JAX adds a note below a traceback."""
    lines = stderr.decode(errors="replace").strip().splitlines()
    named = (one for one in reversed(lines) if re.match(r"[\w.]+(Error|Exception)\b", one))
    return next(named, "".join(lines[-1:]))


def main() -> None:
    """Compile the function that is read from standard input; write what it compiles to if a file is named."""
    from scalingbook_lab.compiler import aot

    job = pickle.loads(sys.stdin.buffer.read())
    fn, args, how = unpack(job["fn"]), job["args"], job["how"]
    if not job.get("portable"):
        aot.compile(fn, *args, **how)
        return
    try:
        found: Any = aot.portable(aot.compile(fn, *args, **how))
    except (ValueError, TypeError, RuntimeError) as error:
        found = error
    Path(sys.argv[1]).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main()

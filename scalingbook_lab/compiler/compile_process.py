"""Compile a function in another process, which receives its code and the modules and values that it refers
to.

The compiler dumps a TPU's instructions only if its flags were set before it started.
`python -m scalingbook_lab.compiler.compile_process` is such a process: it reads the function from standard
input and compiles it.
"""

import importlib
import marshal
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

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
    fn = types.FunctionType(code, namespace | {"__name__": "stack"}, packed_function["name"], defaults, cells)
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


def main() -> None:
    """Compile the function that is read from standard input."""
    from scalingbook_lab.compiler import aot

    packed_function = pickle.loads(sys.stdin.buffer.read())
    aot.compile(unpack(packed_function["fn"]), *packed_function["args"], **packed_function["how"])


if __name__ == "__main__":
    main()

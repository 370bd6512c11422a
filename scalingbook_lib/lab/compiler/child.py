"""How does a function reach another process? As its code, with the modules and values that it names.

The low-level program of a TPU is written out only by a compiler that was told so before it started:
`python -m scalingbook_lib.lab.compiler.child` is that process. It reads the function from standard input,
compiles it, and leaves what the compiler dumps.
"""

import importlib
import marshal
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

MODULE, FUNCTION, VALUE = "module", "function", "value"


def packed(fn: Callable, seen: tuple[Any, ...] = ()) -> dict[str, Any]:
    """A function as plain values: its code, and what its code names outside of it."""
    # pickle names a function by its module and cannot take one from a notebook or a lambda; its code can be
    # taken along by `marshal`, for the other process is the same Python
    plain = getattr(fn, "__wrapped__", fn)
    if not isinstance(plain, types.FunctionType):
        raise TypeError(f"{fn!r} is not written in Python; give a function that calls it")
    if plain in seen:
        raise TypeError(f"{plain.__name__} calls itself; give a function that does not")
    inside = (*seen, plain)
    cells = zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True)
    outside = {name: plain.__globals__[name] for name in _names(plain.__code__) if name in plain.__globals__}
    return {
        "name": plain.__name__,
        "code": marshal.dumps(plain.__code__),
        "globals": {name: _packed(name, value, inside) for name, value in outside.items()},
        "cells": [_packed(name, cell.cell_contents, inside) for name, cell in cells],
        "defaults": [_packed("a default", value, inside) for value in plain.__defaults__ or ()],
        "keywords": {n: _packed(n, value, inside) for n, value in (plain.__kwdefaults__ or {}).items()},
    }


def unpacked(kept: dict[str, Any]) -> Callable:
    """The function again."""
    within = {name: _unpacked(value) for name, value in kept["globals"].items()}
    cells = tuple(types.CellType(_unpacked(value)) for value in kept["cells"])
    defaults = tuple(_unpacked(value) for value in kept["defaults"])
    code = marshal.loads(kept["code"])
    fn = types.FunctionType(code, within | {"__name__": "stack"}, kept["name"], defaults, cells)
    fn.__kwdefaults__ = {name: _unpacked(value) for name, value in kept["keywords"].items()}
    return fn


def _packed(name: str, value: Any, seen: tuple[Any, ...]) -> tuple[str, Any]:
    if isinstance(value, types.ModuleType):
        return MODULE, value.__name__
    if isinstance(getattr(value, "__wrapped__", value), types.FunctionType):
        home = getattr(value, "__module__", "__main__")
        if home.partition(".")[0] in ("jax", "scalingbook_lib"):  # installed there too: its name is enough
            return VALUE, pickle.dumps(value)
        return FUNCTION, packed(value, seen)
    try:
        return VALUE, pickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"{name} cannot be taken to another process ({error}); hand over numbers, shapes and types"
        ) from error


def _unpacked(kept: tuple[str, Any]) -> Any:
    what, value = kept
    if what == MODULE:
        return importlib.import_module(value)
    return unpacked(value) if what == FUNCTION else pickle.loads(value)


def _names(code: types.CodeType) -> set[str]:
    """Every name that a function or one within it may look up outside."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def main() -> None:
    """Compile what standard input holds."""
    from scalingbook_lib.lab.compiler import aot

    kept = pickle.loads(sys.stdin.buffer.read())
    aot.compile(unpacked(kept["fn"]), *kept["args"], **kept["how"])


if __name__ == "__main__":
    main()

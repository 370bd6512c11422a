"""Compile a function of a Python file ahead of time, for `scalingbook inspect`.

`load("train.py:step")` imports that file and nothing else. `compile_function` compiles the function for a TPU
slice or for this machine's devices, without running it, and returns the program's text with its mesh,
arguments and memory as a `ProgramSource`.
"""

import contextlib
import importlib.util
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from scalingbook_lab import devices
from scalingbook_lib import hlo
from scalingbook_lib.inspection.source import Argument, MemoryUse, ProgramSource, platform_of
from scalingbook_lib.machines.torus import SliceError

ARGS_SUFFIX, MESH_NAME = "_args", "mesh_axes"
_PARAMETER = re.compile(r'parameter\((\d+)\).*?op_name="((?:[^"\\]|\\.)*)"')
_ARGUMENT = re.compile(r"\s*([a-z]\w*)\[([^\]]*)\]\s*")


class ProgramError(ValueError):
    """A Python file that cannot be compiled; the message says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFunction:
    """A function of a file, its arguments (a tuple, a callable, or None), and its mesh axes."""

    path: Path
    name: str
    fn: Callable[..., Any]
    arguments: Any
    mesh: Mapping[str, int]


def load(target: str) -> UserFunction:
    """The function of `train.py:step`, with its arguments (step_args) and the mesh_axes of the same file.

    Raises a ProgramError if there is no such file or function, or if the file raises an error.
    """
    file, colon, name = target.rpartition(":")
    if not colon or not name.isidentifier():
        raise ProgramError(f"{target!r} names no function; write FILE.py:FUNCTION, as in train.py:step")
    path = Path(file)
    if not path.is_file():
        raise ProgramError(f"there is no file {file!r}; write the path of a Python file, as in train.py:step")
    module = _imported(path)
    fn = getattr(module, name, None)
    if not callable(fn):
        known = ", ".join(n for n, v in vars(module).items() if callable(v) and _is_own(v, module)) or "none"
        raise ProgramError(f"{file} has no function {name!r}; its functions are: {known}")
    mesh = getattr(module, MESH_NAME, {})
    if not isinstance(mesh, Mapping) or not all(isinstance(n, int) and n > 0 for n in mesh.values()):
        raise ProgramError(
            f"{MESH_NAME} of {file} is {mesh!r}; write a dict of axis sizes, as in "
            f'{MESH_NAME} = {{"data": 16, "model": 4}}'
        )
    return UserFunction(
        path=path, name=name, fn=fn, arguments=getattr(module, name + ARGS_SUFFIX, None), mesh=dict(mesh)
    )


def _is_own(value: Any, module: ModuleType) -> bool:
    return getattr(value, "__module__", "") == module.__name__ and not isinstance(value, type)


def _imported(path: Path) -> ModuleType:
    """The module of a file. Raises a ProgramError with the line at which it raises an error."""
    devices.prepare()
    spec = importlib.util.spec_from_file_location(f"inspected_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ProgramError(f"{path} is not a Python file; write one whose name ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    with _beside(path), _explained(path):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Let a file import its neighbors, as `python FILE` does."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of the user's file into one sentence with the line of the file."""
    try:
        yield
    except (ProgramError, hlo.DoesNotFit, SliceError):
        raise
    except SystemExit as error:
        raise ProgramError(
            f"{path} ends the process with exit code {error.code} when it is imported"
        ) from None
    except Exception as error:
        line, trace = "", error.__traceback__
        while trace is not None:
            if Path(trace.tb_frame.f_code.co_filename) == path.resolve() or (
                trace.tb_frame.f_code.co_filename == str(path)
            ):
                line = f":{trace.tb_lineno}"
            trace = trace.tb_next
        if isinstance(error, SyntaxError) and error.lineno:
            line = f":{error.lineno}"
        told = " ".join(str(error).split())
        raise ProgramError(f"{path}{line} raises {type(error).__name__}: {told[:600]}") from error


def compile_user(
    user: UserFunction, *, slice_name: str = "", mesh: Mapping[str, int] | None = None, arguments: str = ""
) -> ProgramSource:
    """Compile a function that `load` found. `arguments` are shapes as text, for a file that states none.

    Raises a ProgramError if the arguments are missing or wrong or the function raises an error, and
    DoesNotFit if the memory is too small.
    """
    sizes = dict(mesh or user.mesh)
    given = user.arguments
    if arguments:
        given = lambda on: parse_arguments(arguments, on)  # noqa: E731
    if given is None:
        raise ProgramError(
            f"{user.path} does not say which arguments {user.name} takes; define "
            f"{user.name}{ARGS_SUFFIX}(mesh), "
            "which returns a tuple of jax.ShapeDtypeStruct, or write --args 'bf16[4096@data,8192] ...'"
        )
    with _beside(user.path), _explained(user.path):
        return compile_function(user.fn, given, slice_name=slice_name, mesh=sizes)


def compile_function(
    fn: Callable[..., Any], arguments: Any, *, slice_name: str = "", mesh: Mapping[str, int] | None = None
) -> ProgramSource:
    """Compile a function, which may already be `jax.jit`ed, for a slice or for this machine's devices.

    `arguments` is a tuple of shapes, or a function of the mesh that returns one. Shardings over another mesh
    with the same axes, such as an abstract one, are moved to the mesh of the slice.
    """
    sizes = dict(mesh or _sizes_of(arguments))
    if not slice_name and sizes:
        devices.simulate(math.prod(sizes.values()))
    import jax

    from scalingbook_lab.compiler import aot, memory, slices

    slice_ = slices.topology(slice_name) if slice_name else None
    if not sizes:
        sizes = {"X": int(slice_.devices.size) if slice_ else 1}
    on = aot.mesh_for(slice_name or None, sizes)
    with jax.sharding.use_abstract_mesh(on.abstract_mesh):
        given = arguments(on) if callable(arguments) else arguments
        given = given if isinstance(given, tuple | list) else (given,)
        structs = jax.tree.map(lambda a: _placed(a, on), tuple(given))
        jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
        compiled = aot.compile_jitted(jitted, structs, None, abroad=slice_ is not None)
    if slice_:
        slices.check_target(compiled, on, slice_.name)
    usage = memory.memory(compiled, None)
    text = compiled.as_text()
    return ProgramSource(
        text=text,
        mesh=sizes,
        machine=slice_name,
        platform=str(on.devices.flat[0].platform) if not slice_ else platform_of(text) or "tpu",
        arguments=_arguments(structs, compiled, text, on),
        memory=MemoryUse(
            arguments=usage.arguments,
            outputs=usage.results,
            aliased=usage.aliased,
            temporaries=usage.temporaries,
        ),
    )


def _sizes_of(arguments: Any) -> dict[str, int]:
    """The axes of the mesh of the arguments' shardings; none if a function makes them."""
    import jax

    if callable(arguments):
        return {}
    meshes = (getattr(getattr(a, "sharding", None), "mesh", None) for a in jax.tree.leaves(arguments))
    found = next((m for m in meshes if m is not None), None)
    return dict(found.shape) if found is not None else {}


def _placed(a: Any, on: Any) -> Any:
    """An argument on the mesh: its own partition spec, or replicated."""
    import jax

    if not hasattr(a, "shape") or not hasattr(a, "dtype"):
        return a
    spec = getattr(getattr(a, "sharding", None), "spec", None)
    sharding = jax.sharding.NamedSharding(on, spec if spec is not None else jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct(a.shape, jax.dtypes.canonicalize_dtype(a.dtype), sharding=sharding)


def _arguments(structs: Any, compiled: Any, text: str, on: Any) -> tuple[Argument, ...]:
    """The leaves of the arguments, with the mesh axes that replicate each of them."""
    import jax

    leaves = jax.tree_util.tree_flatten_with_path(structs)[0]
    shardings = jax.tree.leaves(compiled.input_shardings[0])
    if len(leaves) != len(shardings):  # arguments that the function does not use are dropped
        shardings = [getattr(leaf, "sharding", None) for _, leaf in leaves]
    names = _names(text, leaves)
    found = []
    for (_, leaf), sharding, name in zip(leaves, shardings, names, strict=True):
        if not hasattr(leaf, "shape"):
            continue
        spec = getattr(sharding, "spec", ())
        used = {axis for part in spec if part for axis in ([part] if isinstance(part, str) else part)}
        shard = tuple(sharding.shard_shape(leaf.shape)) if sharding is not None else tuple(leaf.shape)
        found.append(
            Argument(
                name=name,
                dtype=_HLO_DTYPES.get(str(leaf.dtype.name)) or str(leaf.dtype.name),
                shard=shard,
                dims=tuple(leaf.shape),
                nbytes=float(math.prod(shard) * leaf.dtype.itemsize),
                replicated=tuple(axis for axis, n in on.shape.items() if axis not in used and n > 1),
            )
        )
    return tuple(found)


_HLO_DTYPES = {
    "bfloat16": "bf16", "float32": "f32", "float16": "f16", "float64": "f64", "int32": "s32", "int64": "s64",
    "int8": "s8", "uint8": "u8", "uint32": "u32", "int16": "s16", "bool": "pred", "int4": "s4",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip


def _names(text: str, leaves: list[Any]) -> list[str]:
    """The names of the arguments as XLA writes them, such as state['w']; 'argument 0' for one without."""
    import jax

    printed = dict(_PARAMETER.findall(text[text.find("\nENTRY") :]))
    if len(printed) == len(leaves):
        return [printed[str(n)].replace("\\'", "'") for n in range(len(leaves))]
    return [f"argument {path[0].idx}{jax.tree_util.keystr(path[1:])}" for path, _ in leaves]


def parse_arguments(text: str, on: Any) -> tuple[Any, ...]:
    """Arguments written as 'bf16[4096@data,8192] f32[8192@data+model]': an axis after a dimension shards it.

    Raises a ProgramError that names the argument that cannot be read.
    """
    import jax
    import jax.numpy as jnp

    found, end = [], 0
    for match in _ARGUMENT.finditer(text):
        if text[end : match.start()].strip(" ,;"):
            break
        end = match.end()
        dims, spec = [], []
        for part in filter(None, (p.strip() for p in match[2].split(","))):
            size, _, axes = part.partition("@")
            names = tuple(filter(None, axes.split("+")))
            if not size.isdigit() or set(names) - set(on.shape):
                raise ProgramError(
                    f"{match[0].strip()!r}: {part!r} is not a dimension; write its size, then @ and "
                    "one of the "
                    f"mesh axes {', '.join(on.shape)} if it is sharded, as in 4096@{next(iter(on.shape))}"
                )
            dims.append(int(size))
            spec.append(names or None)
        names = {short: long for long, short in _HLO_DTYPES.items()}
        try:
            dtype = jnp.dtype(names.get(match[1], match[1]))
        except TypeError:
            raise ProgramError(
                f"{match[0].strip()!r}: {match[1]!r} is not a data type; write one of {', '.join(names)}"
            ) from None
        placed = jax.sharding.NamedSharding(on, jax.sharding.PartitionSpec(*spec))
        found.append(jax.ShapeDtypeStruct(tuple(dims), dtype, sharding=placed))
    if text[end:].strip(" ,;") or not found:
        raise ProgramError(
            f"--args {text!r} cannot be read from {text[end:].strip()[:40]!r} on; write arguments as in "
            "'bf16[4096@data,8192] f32[8192]'"
        )
    return tuple(found)


def quiet() -> None:
    """Keep libtpu's and XLA's notices out of the terminal."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

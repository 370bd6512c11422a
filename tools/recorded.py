"""Compile the programs whose compiler output the library records.

`lines()`, `cycles()` and `bundles()` make the records of `scalingbook_lib.evidence.compiled`; `tools.record`
writes them.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from scalingbook_lab.compiler import aot, stack
from scalingbook_lab.kernels import matmul
from scalingbook_lab.kernels.matmul import Tiles
from scalingbook_lib.evidence.compiled.bundles import STRIPS, Kernel
from scalingbook_lib.evidence.compiled.line import ProgramRecord
from scalingbook_lib.hlo import module as hlo_module
from scalingbook_lib.hlo import replica_groups
from scalingbook_lib.hlo.bundles import Bundles
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16, INT8, DType, dtype

ONE, EIGHT = "v5e:1x1", {"topology": "v5e:2x4", "mesh": Mesh(X=2, Y=4)}
SERIAL = {"xla_jf_spmd_threshold_for_windowed_einsum_mib": "1000000"}  # no collective matmul
_CONFIGURATION = re.compile(
    r",? backend_config=\{.*\}$|,? stack_frame_id=\d+|,? frontend_attributes=\{[^}]*\}"
)


def up(x, w):
    """A matmul and an activation in a named scope."""
    with jax.named_scope("up"):
        return jnp.tanh(x @ w)


def product(x, w):
    """The matmul of two matrices."""
    return x @ w


def whole(x, w):
    """An int8 matmul."""
    return jax.lax.dot(x, w, preferred_element_type=jnp.int32)


def softmax(x):
    """The softmax of every row."""
    return jax.nn.softmax(x, axis=-1)


def write(cache, keys, place):
    """Write one token's keys into a cache."""
    return jax.lax.dynamic_update_slice(cache, keys, (0, place, 0, 0))


def look_up(table, tokens):
    """Look up rows of an embedding table."""
    return table[tokens]


def layers(x, w):
    """A scan over as many layers as w has matrices."""
    return jax.lax.scan(lambda h, one: (jnp.tanh(h @ one), None), x, w)[0]


def kernel(x, w):
    """The matmul by a handwritten Pallas kernel."""
    return matmul.matmul(x, w, Tiles(256, 256, 256))


def same(x):
    """The identity, to change only the sharding."""
    return x * 1


def gram(x):
    """tanh of the product of a matrix and its transpose."""
    return jnp.tanh(x @ x.T)


@functools.cache
def programs() -> dict[str, tuple[str, Any]]:
    """Return the compiled programs whose lines are recorded, with descriptions."""
    index = jax.ShapeDtypeStruct((), jnp.int32)
    tokens = jax.ShapeDtypeStruct((512,), jnp.int32)
    inner, outer = ("A[I_X, J_Y]", "B[J, K_Y]"), ("A[I, J_X]", "B[J_X, K_Y]")
    at = functools.partial(aot.compile, topology=ONE)
    over = functools.partial(aot.compile, **EIGHT)
    cache = ("C[B, T, K, H]", "N[B, S, K, H]", index)
    return {
        "up": ("tanh(X[256, 512] · W[512, 1024])", at(up, "X[B, D]", "W[D, F]", B=256, D=512, F=1024)),
        "whole": ("X[20, 200] · W[200, 512] in int8",
                  at(whole, "X[B, D]", "W[D, F]", B=20, D=200, F=512, dtype=INT8)),
        "softmax": ("softmax of X[1000, 200]", at(softmax, "X[B, D]", B=1000, D=200)),
        "write": ("one token into a cache of 4,096",
                  at(write, *cache, B=8, T=4096, S=1, K=8, H=128, donate=(0,))),
        "look_up": ("512 rows of E[32000, 1024]", at(look_up, "E[V, D]", tokens, V=32000, D=1024)),
        "layers": ("a scan over 8 layers", at(layers, "X[B, D]", "W[L, D, F]", L=8, B=256, D=512, F=512)),
        "kernel": ("a Pallas product of 512 × 512", at(kernel, "X[B, D]", "W[D, F]", B=512, D=512, F=512)),
        "serial": ("A[I_X, J_Y] · B[J, K_Y], all 8,192, no rings", over(
            product, *inner, out="C[I_X, K_Y]", I=8192, J=8192, K=8192, options=SERIAL)),
        "ring": ("A[I_X, J_Y] · B[J, K_Y], all 8,192", over(
            product, *inner, out="C[I_X, K_Y]", I=8192, J=8192, K=8192)),
        "sum": ("A[I, J_X] · B[J_X, K_Y], summed", over(
            product, *outer, out="C[I, K_Y]", I=512, J=4096, K=4096)),
        "scatter": ("A[I, J_Y] · B[J_Y, K], summed into shards", over(
            product, "A[I, J_Y]", "B[J_Y, K]", out="C[I, K_Y]", I=4096, J=8192, K=4096, options=SERIAL)),
        "turn": ("A[I_Y, J] → A[I, J_Y]", over(same, "A[I_Y, J]", out="A[I, J_Y]", I=4096, J=8192)),
        "inner": ("A[I_XY, J] → A[I_X, J]", over(same, "A[I_XY, J]", out="A[I_X, J]", I=4096, J=8192)),
    }  # fmt: skip


# The title of a line, its program, and a part of its text by which it is found.
ASKED: Mapping[str, tuple[str, str]] = {
    "all-gather over Y": ("serial", " all-gather("),
    "all-gather over Y, groups as an iota": ("inner", " all-gather("),
    "all-reduce over X": ("sum", " all-reduce("),
    "reduce-scatter in disguise": ("scatter", "all-reduce-scatter"),
    "permute of a ring, started": ("ring", " collective-permute-start("),
    "all-to-all over Y": ("turn", " all-to-all("),
    "matmul and tanh in one fusion": ("up", "ROOT"),
    "copy of weights to VMEM, started": ("up", " copy-start("),
    "int8 argument of 20 rows": ("whole", "s8[20,200]"),
    "argument in transposed layout": ("softmax", " parameter("),
    "maximum of every row": ("softmax", " reduce("),
    "write into a cache": ("write", "ROOT"),
    "copy of an index to scalar memory": ("write", " copy("),
    "rows of an embedding": ("look_up", "ROOT"),
    "loop over layers": ("layers", " while("),
    "copy to another order": ("turn", " copy("),
    "bitcast to another shape": ("turn", " bitcast("),
    "kernel written by hand": ("kernel", " custom-call("),
}


def lines() -> tuple[ProgramRecord, ...]:
    """Return the recorded lines as this machine's compiler writes them."""
    return tuple(_line(title, name, found) for title, (name, found) in ASKED.items())


def _line(title: str, name: str, found: str) -> ProgramRecord:
    words, program = programs()[name]
    entry = program.text[program.text.index("\nENTRY ") :]
    text = next(line.strip() for line in entry.splitlines()[2:] if found in line)
    sizes = {k: int(v) for k, v in program.mesh.shape.items()} if program.mesh.size > 1 else {}
    said = _within(program, text)
    return ProgramRecord(title, words, _plain(text), sizes, _groups(said, program.mesh.size), _moves(said))


def _plain(line: str) -> str:
    """Return a line without the compiler's configuration."""
    while (shorter := _CONFIGURATION.sub("", line)) != line:
        line = shorter
    return line.replace("metadata={}", "").replace("{ op_name", "{op_name").rstrip(", ")


def _within(program: Any, line: str) -> str:
    """Return the text with the replica groups: the line, or the collective in its called computation."""
    if "all-reduce-scatter" not in line:
        return line
    called = hlo_module.parse(program).computations["all-reduce-scatter"].instructions.values()
    return next(i.attributes for i in called if i.opcode == "all-reduce")


def _groups(text: str, devices: int) -> tuple[tuple[int, ...], ...]:
    return tuple(replica_groups.read(text, devices)) if "replica_groups" in text else ()


def _moves(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((a, b) for a, b in replica_groups.pairs(text))


def cycles(topology: str, rows: int, kind: DType = BF16, width: int = 8192) -> int:
    """Return the compiler's cycle estimate for X[rows, width] · W[width, width]."""
    fn: Callable = whole if kind == INT8 else product
    return aot.compile(
        fn, "X[M, D]", "W[D, F]", topology=topology, M=rows, D=width, F=width, dtype=kind
    ).cycles


def table(topology: str, kind: str, sizes: tuple[int, ...]) -> dict[int, int]:
    """Return the estimates for several numbers of rows."""
    return {rows: cycles(topology, rows, dtype(kind)) for rows in sizes}


KERNELS: Mapping[str, tuple[str, Callable, dict[str, Any], int]] = {
    "tanh(X · Xᵀ), X[1024, 1024]": ("v5e", gram, {"B": 1024, "D": 1024}, 0),
    "X[1024, 128] · W[128, 1024]": ("v5e", product, {"B": 1024, "D": 128, "F": 1024}, 0),
    "X[8, 4096] · W[4096, 4096]": ("v5e", product, {"B": 8, "D": 4096, "F": 4096}, 0),
    "softmax of X[1024, 1024], its sums": ("v5e", softmax, {"B": 1024, "D": 1024}, 1),
}


def bundles() -> Iterator[Kernel]:
    """Yield the recorded kernels as this machine's compiler writes them."""
    return (packed(title, *how) for title, how in KERNELS.items())


def packed(title: str, chip: str, fn: Callable, sizes: dict[str, Any], place: int) -> Kernel:
    """Return one kernel of a function of X[B, D], and of W[D, F] if F is given."""
    arrays = ("X[B, D]", "W[D, F]")[: 2 if "F" in sizes else 1]
    found = stack.of(fn, *arrays, topology=f"{chip}:1x1", llo=True, **sizes)
    return _strips(title, found.bundles[place])


def _strips(title: str, written: Bundles) -> Kernel:
    """Return the used slots of each unit in equal strips of a kernel's bundles."""
    n = len(written.used)
    edges = [k * n // STRIPS for k in range(STRIPS + 1)]
    used = {
        slot: tuple(sum(row[k] for row in written.used[a:b]) for a, b in itertools.pairwise(edges))
        for k, slot in enumerate(written.slots)
    }
    return Kernel(title, n, dict(zip(written.slots, written.capacity, strict=True)), used)

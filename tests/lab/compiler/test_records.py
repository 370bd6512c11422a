"""Recorded results of the compiler equal those of the same version, and are close to those of others."""

import re
from importlib import metadata

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab.compiler import aot
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.compiled import RECORDED, cycles, layout
from scalingbook_lib.evidence.compiled.bundles import KERNELS
from scalingbook_lib.evidence.compiled.lines import LINES
from scalingbook_lib.units import BF16, FP32, INT8
from tools import recorded as programs
from tools.compiled import profiled

ROWS = (1, 2, 3, 4, 5, 8, 9, 20, 31, 32, 33, 64)
COLUMNS = (1, 5, 20, 64, 127, 128, 129, 512)
TYPES = {FP32: jnp.float32, BF16: jnp.bfloat16, INT8: jnp.int8}


@pytest.fixture(scope="module")
def same(tpu):
    """Whether the compiler here is the recorded one."""
    return metadata.version("libtpu") in RECORDED.text


def test_the_lines_are_what_the_compiler_writes(same):
    for line in programs.lines():
        recorded = LINES[line.title]
        assert (line.groups, line.moves, line.mesh) == (recorded.groups, recorded.moves, recorded.mesh)
        assert line.operation == recorded.operation
        assert line.text == recorded.text or not same


@pytest.mark.parametrize(("topology", "rows"), [("v5e:1x1", 8), ("v5e:1x1", 1024), ("v6e:1x1", 256)])
def test_the_cycles_are_what_the_compiler_estimates(same, topology, rows):
    recorded = cycles.ESTIMATES[f"{cycles.TARGETS[topology].name}, bf16"].cycles[rows]
    assert programs.cycles(topology, rows) == pytest.approx(recorded, rel=0.001 if same else 0.3)


@pytest.mark.parametrize(("topology", "ahead"), [("v5e:1x1", True), ("v5p:1x1x1", False)])
def test_prefetched_weights_are_not_in_the_estimate(same, topology, ahead):
    """64 MiB fit into the 128 MiB of one v5e core, and not into what a core of v5p has."""
    program = aot.compile(
        programs.whole, "X[M, D]", "W[D, F]", topology=topology, M=8, D=8192, F=8192, dtype=INT8
    )
    kept = cycles.ESTIMATES[f"{cycles.TARGETS[topology].name}, int8"]
    assert kept.prefetched == ahead
    assert (program.prefetched_bytes == 8192 * 8192) == ahead or not same


def test_the_bundles_are_what_the_compiler_packs(same):
    title, (chip, fn, sizes, place) = list(programs.KERNELS.items())[1]
    found, kept = programs.packed(title, chip, fn, sizes, place), KERNELS[title]
    assert found == kept or not same
    assert found.utilization("MATMUL") == pytest.approx(kept.utilization("MATMUL"), abs=0.15)


def test_the_stages_and_live_ranges_of_the_figures_are_the_compiler_s(same):
    kept = {row["title"]: row for row in resources.record("compiled_profiling")}
    assert profiled.stages() == kept["stages"]["stages"] or not same
    found = profiled.alive(profiled.compiled())
    assert {"title": "alive"} | found == kept["alive"] or not same
    most = max(
        sum(n for _, n, born, last in found["buffers"] if born <= k[1] <= last) for k in found["kernels"]
    )
    assert most == pytest.approx(profiled.compiled().memory.temporaries, rel=0.05)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_the_compilers_layouts_follow_the_rule(same, kind):
    """Every shape is an argument of one program, and its type there contains its layout."""
    everywhere = NamedSharding(aot.mesh_for("v5e:1x1", {"X": 1}), PartitionSpec())
    shapes = [(rows, columns) for rows in ROWS for columns in COLUMNS]
    given = [jax.ShapeDtypeStruct(shape, TYPES[kind], sharding=everywhere) for shape in shapes]
    program = aot.compile(
        lambda *xs: sum(x[0, 0].astype(jnp.float32) for x in xs), *given, topology="v5e:1x1"
    )
    entry = program.text[program.text.index("\nENTRY ") :]
    laid = {int(n): text for text, n in re.findall(r"= (\w+\[[\d,]*\]\{[^}]*\}) parameter\((\d+)\)", entry)}
    found = [laid[k] for k in range(len(shapes))]
    assert found == [layout.default_layout(*shape, kind).text for shape in shapes] or not same

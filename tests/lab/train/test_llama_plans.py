"""The program of the LLaMA chapter, for models that its page does not compile: memory as predicted."""

import os
import re
from pathlib import Path

import pytest

from scalingbook_lab.compiler import aot

PAGE = Path(__file__).parents[3] / "chapters" / "training_llama3_compiled.md"
CELL = re.compile(r"```\{code-cell\} ipython3\n(?!:tags)(.*?)```", re.DOTALL)
TOPOLOGIES = {"8B, 4x4x16": "v5p:4x4x16", "405B, 16x16x16": "v5p:16x16x16"}


@pytest.fixture(scope="module")
def chapter():
    """The names of the chapter: its imports and models, the program, the prediction, the compiler's bytes."""
    if not aot.available():
        if os.environ.get("CI"):
            pytest.fail(aot.why_not())
        pytest.skip(aot.why_not())
    names: dict = {"compiler": (0, 0, 0)}
    wanted = (
        "from dataclasses import replace\n",
        "def attention(",
        "SPLIT = {",
        "def counted(",
        "COMPILED = {",
    )
    for start in wanted:
        (cell,) = [c for c in CELL.findall(PAGE.read_text()) if c.startswith(start)]
        exec(cell.partition("\ngiven, here =")[0].partition("\ncompared = [")[0], names)
    return names


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_memory_of_a_plan_is_within_a_tenth_of_the_prediction(chapter, name):
    m, (R, X, C, batch), told = chapter["COMPILED"][name]
    arrays = (*chapter["SPLIT"].values(), "A[B_RX, T_C, D]")
    program = aot.compile(
        chapter["gradients"], *arrays, out=arrays[:-1], local=True, mesh={"R": R, "X": X, "C": C},
        topology=TOPOLOGIES[name], B=batch, T=4096, L=m.L, D=m.D, F=m.F, N=m.N, K=m.K, H=m.H,
    )  # fmt: skip
    found = program.memory.arguments, program.memory.results, program.memory.temporaries
    assert found == pytest.approx(told, rel=0.01)  # to the byte for one version of the compiler
    (state, state_found), *rest = chapter["beside"](m, (R, X, C, batch), found)
    assert state_found == pytest.approx(state, rel=0.01)
    for count, compiled in rest:
        assert compiled == pytest.approx(count, rel=0.1)

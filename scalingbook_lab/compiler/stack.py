"""Show every compiler stage of a function side by side, by named scope.

`stack.of(fn, "X[B, D]", "W[D, F]", B=256, D=512, F=1024)` returns the jaxpr, StableHLO, HLO, the TPU
compiler's optimized HLO and its schedule. With `llo=True` it adds the TPU's instruction bundles.
`.excerpt("up")` shows the lines that `jax.named_scope("up")` became in each stage. Chapter: Profiling.
"""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from scalingbook_lab.compiler import aot, llo, sharding
from scalingbook_lab.compiler.aot import Program
from scalingbook_lib.hlo import listings, scopes, walk
from scalingbook_lib.hlo.bundles import Bundles
from scalingbook_lib.hlo.text_table import text_table
from scalingbook_lib.notation import Array
from scalingbook_lib.units import BF16, DType, Result

MAX_LINES, WIDTH = 12, 160  # number of lines of a stage in an excerpt, and their length


@dataclass(frozen=True, slots=True)
class CompilerStage(Result):
    """A function in one of the compiler's languages: its lines and, if known, the scopes that each comes
    from.
    """

    name: str
    lines: tuple[str, ...]
    sources: tuple[str, ...] = field(repr=False)

    @property
    def text(self) -> str:
        """All lines as one text."""
        return "\n".join(self.lines)

    def of(self, scope: str) -> tuple[str, ...]:
        """Return the lines that come from a named scope."""
        written = zip(self.lines, self.sources, strict=True)
        return tuple(line for line, source in written if scope in scopes.scope_names(source, primitive=False))

    def __str__(self) -> str:
        return f"{self.name}, {len(self.lines)} lines\n{self.text}"


_SIDE_BY_SIDE = (
    "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));gap:.5rem 1rem"
)
_LINES = "white-space:pre;overflow-x:auto;margin:.2rem 0;font-size:.8em"


@dataclass(frozen=True, slots=True)
class Excerpt(Result):
    """One scope in every stage, shown side by side if HTML is available and the page is wide enough."""

    scope: str
    stages: tuple[CompilerStage, ...]
    limit: int = MAX_LINES

    def _shown(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each stage's name with at most `limit` of its lines."""
        for stage in self.stages:
            of = stage.of(self.scope)
            lines = [line if len(line) <= WIDTH else line[: WIDTH - 2] + " …" for line in of]
            hidden = len(lines) - self.limit
            more = [f"... and {hidden} more"] if hidden > 0 else []
            yield stage.name, [*lines[: self.limit], *more] or [f"nothing is called {self.scope} here"]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        stages = "".join(
            f'<div style="min-width:0"><b>{name}</b><pre tabindex="0" style="{_LINES}">'
            f"{html.escape(chr(10).join(lines))}</pre></div>"
            for name, lines in self._shown()
        )
        return {"text/plain": str(self), "text/html": f'<div style="{_SIDE_BY_SIDE}">{stages}</div>'}

    def __str__(self) -> str:
        return "\n".join("\n  ".join([f"{name}:", *lines]) for name, lines in self._shown())


@dataclass(frozen=True, slots=True)
class CompilerStages(Result):
    """A function in all compiler stages, with the compiled program and its kernels' bundles."""

    stages: tuple[CompilerStage, ...]
    program: Program = field(repr=False)
    bundles: tuple[Bundles, ...] = ()

    def __getitem__(self, name: str) -> CompilerStage:
        for stage in self.stages:
            if stage.name.lower() == name.lower():
                return stage
        raise ValueError(f"no stage {name!r}; there are {', '.join(s.name for s in self.stages)}")

    @property
    def scopes(self) -> tuple[str, ...]:
        """The named scopes, in the order of the jaxpr."""
        paths = (scopes.scope_names(source, primitive=False) for source in self["jaxpr"].sources)
        return tuple(dict.fromkeys(name for path in paths for name in path))

    def excerpt(self, scope: str, limit: int = MAX_LINES) -> Excerpt:
        """Return the lines of a named scope, stage by stage. Raises ValueError if there is no such scope."""
        if scope not in self.scopes:
            raise ValueError(f"no scope {scope!r}; there are: {', '.join(self.scopes) or 'none'}")
        return Excerpt(scope, self.stages, limit)

    def __str__(self) -> str:
        rows = [("stage", *self.scopes, "lines")]
        for stage in self.stages:
            rows.append((stage.name, *(str(len(stage.of(s))) for s in self.scopes), str(len(stage.lines))))
        return text_table(rows)


def of(
    fn: Callable,
    *args: str | Array,
    topology: str = "v5e:1x1",
    mesh: Any = None,
    out: str | Array | Sequence[str | Array] | None = None,
    dtype: DType | Mapping[str, DType] = BF16,
    llo: bool = False,
    **sizes: int,
) -> CompilerStages:
    """Return every stage of a function of arrays in the notation, compiled for a TPU slice as in
    `aot.compile`.

    With `llo`, a second process compiles the function again and dumps its bundles, which takes a few seconds
    more.
    """
    how = {"topology": topology, "mesh": mesh, "out": out, "dtype": dtype, **sizes}
    program = aot.compile(fn, *args, **how)
    structs = [sharding.argument(a, program.mesh, dtype, sizes) for a in args]
    traced = jax.jit(fn, **sharding.results(out, program.mesh)).trace(*structs)
    lowered = traced.lower()
    kernels = _bundles(fn, args, how, program) if llo else ()
    found = (
        _stage("jaxpr", listings.jaxpr(traced.jaxpr)),
        _stage("StableHLO", listings.stablehlo(lowered.as_text(debug_info=True))),
        _stage("HLO", listings.hlo(lowered.as_text(dialect="hlo", debug_info=True))),
        _stage("optimized HLO", listings.hlo(program.text)),
        _stage("schedule", ((str(s), s.source) for s in program.schedule(copies=True))),
        *([_stage("LLO", ((line, b.source) for b in kernels for line in b.lines))] if llo else []),
    )
    return CompilerStages(found, program, kernels)


def _bundles(fn: Callable, args: tuple, how: dict[str, Any], program: Program) -> tuple[Bundles, ...]:
    """Return the bundles of every kernel, with the scopes that the program text gives for it."""
    text = program.parsed
    outer = (visit.instruction for visit in walk.visits(text) if visit.inside is None)
    sources = {i.name: walk.scope_path(text, i) for i in outer}
    return tuple(replace(b, source=sources.get(b.kernel, "")) for b in llo.dump(fn, args, how))


def _stage(name: str, written: Any) -> CompilerStage:
    """Build a stage from pairs of a line and its scopes."""
    lines, sources = zip(*written, strict=True)
    return CompilerStage(name, lines, sources)

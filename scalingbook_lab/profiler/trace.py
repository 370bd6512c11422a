"""Record profiles of JAX programs.

`trace.record(step, x, w)` compiles the function, warms it up and profiles a few calls;
`with trace.recording() as seen:` profiles a block as it is. Both produce a `profiles.Trace`, a table of
operations. `trace.read` reads a profiler's file. Chapter: Profiling.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from scalingbook_lab import devices as lab_devices
from scalingbook_lab.compiler.slices import stderr_silenced
from scalingbook_lib.profiles import Trace, xplane

STEP = "step"


@dataclass(slots=True)
class Recording:
    """A block that is being profiled; `trace` is available after the block ends."""

    folder: str
    found: Trace | None = field(default=None, repr=False)

    @property
    def trace(self) -> Trace:
        """The profile of the block. Raises RuntimeError inside the block."""
        if self.found is None:
            raise RuntimeError("the block still runs; ask for its trace after the `with`")
        return self.found


def record(
    fn: Callable, *args: Any, runs: int = 3, warmup: int = 1, title: str = "", folder: str | None = None
) -> Trace:
    """Profile `runs` consecutive calls of a function that has been compiled and warmed up.

    A function of `jax.jit` is compiled ahead of time, so that its text describes each operation; any other
    function is called as it is. `folder` receives the profiler's own files, for XProf.
    """
    lower = getattr(fn, "lower", None)
    call = lower(*args).compile() if lower else fn
    for _ in range(warmup):
        jax.block_until_ready(call(*args))
    programs = (call,) if call is not fn else ()
    title = title or getattr(fn, "__name__", "a function")
    with recording(*programs, title=title, folder=folder) as recorded:
        for n in range(runs):
            with jax.profiler.StepTraceAnnotation(STEP, step_num=n):
                jax.block_until_ready(call(*args))
    return replace(recorded.trace, warmup=warmup)


@contextmanager
def recording(
    *programs: Any, title: str = "a block", folder: str | None = None, annotations: Sequence[str] = ()
) -> Iterator[Recording]:
    """Profile a block as it runs, compilations included: `with trace.recording(compiled) as seen: ...`.

    `programs` are compiled programs that run in the block (`jit(f).lower(x).compile()`, or one of
    `compiler.aot`); their texts describe the operations. Wait for results within the block. `annotations` are
    names of `jax.profiler.TraceAnnotation`s to include.
    """
    recorded = Recording(folder or tempfile.mkdtemp(prefix="trace-"))
    with stderr_silenced():  # older profilers complain that TensorFlow is not installed
        jax.profiler.start_trace(recorded.folder, **_options())
    try:
        yield recorded
    finally:
        with stderr_silenced():
            jax.profiler.stop_trace()
    recorded.found = read(recorded.folder, *programs, title=title, annotations=annotations)


def read(folder: str, *programs: Any, title: str = "a profile", annotations: Sequence[str] = ()) -> Trace:
    """Read the newest profile in a folder, or a file *.xplane.pb, recorded here or on another machine."""
    first = lab_devices.get()[0]
    return xplane.read(
        folder,
        *programs,
        annotations=(STEP, *annotations),
        title=title,
        platform=first.platform,
        kind=first.device_kind,
        versions=f"jax {jax.__version__}",
    )


def _options() -> dict[str, Any]:
    """Return profiler options that omit an event for every Python call, if this JAX has options."""
    if not hasattr(jax.profiler, "ProfileOptions"):
        return {}
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    return {"profiler_options": options}

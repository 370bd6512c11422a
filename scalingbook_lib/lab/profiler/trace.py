"""What did a device really do, operation by operation? Record a profile, read it, keep it, look at it.

`trace.record(step, x, w)` compiles and warms up, then profiles some calls; `with trace.recording() as seen:`
profiles a block as it is. Both end in a `Trace`: a table of operations, `trace.against(seen, chip)` beside
the roofline, `trace.picture(seen)` as a time line. `trace.expected(program)` is what a TPU slice that is not
here should show. `trace.save` keeps one in a small file; `trace.load`
reads it, and everything but recording works without JAX. Chapter: Profiling.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from scalingbook_lib.lab.profiler import ops
from scalingbook_lib.lab.profiler import read as trace_read
from scalingbook_lib.lab.profiler.expected import against, expected
from scalingbook_lib.lab.profiler.file import chrome, load, names, perfetto, save, xprof
from scalingbook_lib.lab.profiler.table import Moment, Op, OperationRow, Trace
from scalingbook_lib.lab.profiler.times import Event, Lanes
from scalingbook_lib.lab.profiler.view import picture, view

__all__ = [
    "Event",
    "Lanes",
    "Moment",
    "Op",
    "OperationRow",
    "Recording",
    "Trace",
    "against",
    "chrome",
    "expected",
    "load",
    "names",
    "perfetto",
    "picture",
    "read",
    "record",
    "recording",
    "save",
    "view",
    "xprof",
]

STEP = "step"


@dataclass(slots=True)
class Recording:
    """A block that is being profiled; `trace` is there when it has ended."""

    folder: str
    found: Trace | None = field(default=None, repr=False)

    @property
    def trace(self) -> Trace:
        """The profile of the block."""
        if self.found is None:
            raise RuntimeError("the block still runs; ask for its trace behind the `with`")
        return self.found


def record(
    fn: Callable, *args: Any, runs: int = 3, warmup: int = 1, title: str = "", folder: str | None = None
) -> Trace:
    """Profile so many calls of a function, compiled and warmed up before; each call is waited for.

    A function of `jax.jit` is compiled ahead, so that its text says what each operation is; any other
    function is called as it is. `folder` keeps the profiler's own files, for XProf.
    """
    import jax

    lower = getattr(fn, "lower", None)
    call = lower(*args).compile() if lower else fn
    for _ in range(warmup):
        jax.block_until_ready(call(*args))
    programs = (call,) if call is not fn else ()
    with recording(*programs, title=title or getattr(fn, "__name__", "a function"), folder=folder) as seen:
        for n in range(runs):
            with jax.profiler.StepTraceAnnotation(STEP, step_num=n):
                jax.block_until_ready(call(*args))
    return replace(seen.trace, warmup=warmup)


@contextmanager
def recording(
    *programs: Any, title: str = "a block", folder: str | None = None, marks: Sequence[str] = ()
) -> Iterator[Recording]:
    """Profile a block as it runs, compilations included: `with trace.recording(compiled) as seen: ...`.

    `programs` are compiled programs that run in it (`jit(f).lower(x).compile()`, or one of `compiler.aot`):
    their texts say what the operations are. Wait for results within the block. `marks` are names of
    `jax.profiler.TraceAnnotation`s to keep.
    """
    import jax

    from scalingbook_lib.lab.compiler.slices import quiet

    seen = Recording(folder or tempfile.mkdtemp(prefix="trace-"))
    with quiet():  # older profilers complain that TensorFlow is not there
        jax.profiler.start_trace(seen.folder, **_options())
    try:
        yield seen
    finally:
        with quiet():
            jax.profiler.stop_trace()
    seen.found = read(seen.folder, *programs, title=title, marks=marks)


def read(folder: str, *programs: Any, title: str = "", marks: Sequence[str] = ()) -> Trace:
    """The newest profile in a folder, or a file *.xplane.pb, recorded here or on another machine."""
    import jax

    from scalingbook_lib.lab import devices as lab_devices

    devices = lab_devices.get()
    known = ops.of(programs)
    first = devices[0]
    found = trace_read.read(
        folder,
        known,
        (STEP, *marks),
        title=title or "a profile",
        platform=first.platform,
        kind=first.device_kind,
        devices=1,
        simulated=first.platform == "cpu",
        warmup=None,
        versions=f"jax {jax.__version__}",
    )
    return replace(found, devices=len({e.device for e in found.events}) or 1)


def _options() -> dict[str, Any]:
    """Without an event for every Python call, where this JAX lets one choose."""
    import jax

    if not hasattr(jax.profiler, "ProfileOptions"):
        return {}
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    return {"profiler_options": options}

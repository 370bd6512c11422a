"""Explorer of the bottleneck of chunks that stream from HBM through VMEM to the vector unit."""

from dataclasses import dataclass

from scalingbook_book.reader.explorers.parts import (
    Chart,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Slider,
    Span,
    Timeline,
    View,
    pluralize,
)
from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, MiB, percent, si

_COPY, _LOAD, _COMPUTE = "HBM to VMEM", "VMEM to registers", "vector unit"
_ARRAYS, _BUFFERS = 2, 2  # x and y; of each, one chunk in use and one on its way
_VPU = chips.V5E.vector_flops_per_s or 0.0
_VMEM, _VMEM_BYTES = chips.V5E.vmem_bytes_per_s or 0.0, chips.V5E.vmem_bytes or 0.0
_COUNTS = [2**e for e in range(7)]


@dataclass(frozen=True, slots=True)
class Reduction:
    """Σ f(x, y), element by element, on one TPU v5e with HBM of the reader's choice.

    Nothing but one number is written back, so that every lane has a path of its own.
    """

    nbytes: float  # of one array
    ops: int
    hbm_bytes_per_s: float

    def pipeline(self, chunks: int) -> roofline.CopyPipeline:
        """Both arrays cross HBM's path, then VMEM's; the vector unit computes on their elements."""
        read = _ARRAYS * self.nbytes / chunks
        compute_s = self.ops * self.nbytes / BF16.bytes / _VPU / chunks
        return roofline.pipeline(
            {_COPY: read / self.hbm_bytes_per_s, _LOAD: read / _VMEM, _COMPUTE: compute_s}, chunks
        )

    def vmem_bytes(self, chunks: int) -> float:
        """Two buffers of a chunk of each array; one, where one chunk is all there is."""
        return min(_BUFFERS, chunks) * _ARRAYS * self.nbytes / chunks

    @property
    def break_even_ops(self) -> float:
        """The operations an element at which the vector unit takes as long as HBM."""
        return _ARRAYS * BF16.bytes * _VPU / self.hbm_bytes_per_s


def _pipeline(*, chunks: int, array: int, ops: int, hbm: float) -> View:
    work = Reduction(array * MiB, ops, hbm)
    now = work.pipeline(chunks)
    spans = [
        Span(t.stage, t.start_s, t.end_s, str(t.chunk + 1) if chunks <= 12 else "", t.chunk % 2)
        for t in now.turns
    ]
    timeline = Timeline(tuple(now.chunk_s), spans, refs=(RefLine("slowest alone", now.lower_s),))
    share = work.vmem_bytes(chunks) / _VMEM_BYTES
    return View(
        _verdict(now, share),
        (timeline, _curves(work, chunks)),
        (
            Readout("time", now.total_s, "s"),
            Readout("slowest stage alone", now.lower_s, "s"),
            Readout("without overlap", now.upper_s, "s"),
            Readout.percent("vector unit idle", 1 - now.busy[_COMPUTE], 3),
            Readout("break-even", work.break_even_ops, "FLOPs/pair"),
            Readout.binary("VMEM needed", work.vmem_bytes(chunks)),
        ),
    )


def _curves(work: Reduction, chunks: int) -> Chart:
    lines = [work.pipeline(n) for n in _COUNTS]
    return Chart(
        Scale("chunks", "", "pow2", 1, 64),
        Scale("time", "s"),
        (
            Curve("in chunks", _COUNTS, [p.total_s for p in lines], 0),
            Curve("slowest stage alone", _COUNTS, [p.lower_s for p in lines], 2, dashed=True),
            RefLine("your chunks", chunks),
        ),
        title="More chunks, less waiting",
    )


def _verdict(now: roofline.CopyPipeline, share: float) -> str:
    over = now.total_s / now.lower_s - 1
    pace = "the vector unit" if now.slowest == _COMPUTE else "HBM"
    said = (
        f"{pluralize(now.chunks, 'chunk')} {'takes' if now.chunks == 1 else 'take'} {si(now.total_s, 's')}, "
        f"{percent(over)} more than {pace} alone would take"
    )
    if share > 1:
        return f"{said}. But the buffers need {share:.2g} times the VMEM of a v5e, so use more chunks."
    starved = "HBM waits for the vector unit" if now.slowest == _COMPUTE else "The vector unit waits for HBM"
    return f"{said}. {starved}."


PIPELINE = Explorer(
    key="tpus.pipeline",
    title="Streaming chunks from HBM through VMEM to the vector unit",
    question="How many chunks, and how many FLOPs per pair of elements, are needed so that the slowest stage "
    "never waits?",
    controls={
        "chunks": Slider("chunks", 1, 64, 8),
        "array": Slider("size of each array", 1, 256, 64, "pow2", "MiB"),
        "ops": Slider("FLOPs per pair of elements", 1, 256, 16, "pow2"),
        "hbm": Slider("HBM bandwidth", 1e11, 8e12, 8.19e11, "log", "B/s"),
    },
    view=_pipeline,
)

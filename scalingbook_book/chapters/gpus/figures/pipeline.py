"""Figure of a kernel's software pipeline: loads into a ring of buffers, and the Tensor Cores that use them."""

from scalingbook_book.reader.explorers.view import Span, Timeline
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import MATH, MEMORY
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines.chips import B200
from scalingbook_lib.machines.sm import sm_rates
from scalingbook_lib.roofline import gpu_kernels
from scalingbook_lib.roofline.gpu_kernels import MatmulTile
from scalingbook_lib.units import KiB, percent
from scalingbook_lib.words import pluralize

SHALLOW, DEEP = 1, 3  # stages in flight
ROUNDS = 3  # loads one after the other that the figure shows
TENSOR_CORES = "Tensor Cores"


def tile(stages: int) -> MatmulTile:
    """A tile of 256 × 256 that two SMs of a B200 share."""
    return gpu_kernels.matmul_tile(B200, 256, 256, sms=2, stages=stages, output_bytes=64 * KiB)


def schedule(load: float, math: float, stages: int, end: float) -> list[Span]:
    """Load every stage into the buffer that is free first, and multiply the stages in order, until `end`."""
    free, done = [0.0] * stages, 0.0  # when each buffer is free again; when the last stage was multiplied
    spans: list[Span] = []
    stage = 0
    while min(free) < end:
        buffer = stage % stages
        start = free[buffer]
        begin = max(start + load, done)
        done = free[buffer] = begin + math
        for lane, first, last, color in (
            (_buffer(buffer), start, start + load, MEMORY),
            (TENSOR_CORES, begin, done, MATH),
        ):
            if first < end:
                spans.append(Span(lane, first, min(last, end), f"{stage + 1}", color))
        stage += 1
    return spans


def pipeline() -> Figure:
    """When do loads and Tensor Cores work, with one stage in flight and with three?"""
    load, math = gpu_kernels.LOAD_LATENCY_S * sm_rates(B200).clock_hz, tile(SHALLOW).cycles_by["math"]
    end = ROUNDS * (load + math)
    one, three = (percent(tile(stages).ceiling) for stages in (SHALLOW, DEEP))
    return Figure(
        key="gpus.pipeline",
        alt=f"Two timelines over {end:,.0f} cycles. With one buffer, loads of {load:,.0f} cycles alternate with {math:,.0f} cycles on the Tensor Cores. "
        "With three buffers, three loads are in flight at a time, and the Tensor Cores work almost without a gap after the first load.",
        caption=f"Loads and Tensor Cores over time, with one stage in flight and with three, for the tile of 256 × 256 that two "
        f"SMs of a B200 share. A load takes {load:,.0f} cycles, and multiplying a stage takes {math:,.0f}. With one buffer, the "
        f"Tensor Cores wait for every load and are busy {one} of the time. With three buffers, they wait only for the first load "
        f"and in short gaps, and are busy {three} of the time. (Numbers are stages; the time to fill the pipeline is not counted.)",
        parts=lambda wide: [
            _key(wide),
            *(
                Timeline(
                    (*(_buffer(k) for k in range(stages)), TENSOR_CORES),
                    schedule(load, math, stages, end),
                    unit="",
                    end=end,
                    title=f"{pluralize(stages, 'stage')} in flight",
                    label="time in cycles",
                )
                for stages in (SHALLOW, DEEP)
            ),
        ],
    )


def _buffer(k: int) -> str:
    return f"buffer {k + 1}"


def _key(wide: float) -> Sketch:
    """The color of loads and of matmuls."""
    shapes, end = key(wide, 2, {MEMORY: "load of a stage (TMA)", MATH: "matmul of a stage (MMA)"})
    return Sketch(wide, end, shapes)

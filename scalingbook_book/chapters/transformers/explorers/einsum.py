"""Explorer of an einsum: its contracting, batching and free indices, and its FLOPs, bytes and time."""

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    Bars,
    Cell,
    Chips,
    Explorer,
    Grid,
    Notation,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    join_and,
)
from scalingbook_lib import rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import Einsum
from scalingbook_lib.units import BF16, count, count_in_words, rounded, si

_COLORS = {"contracting": 1, "batching": 0, "free": 2}
_MOST = 6  # indices that have a slider


def _einsum(*, text: str, a: int, b: int, c: int, d: int, e: int, f: int, chip: str) -> View:
    product = _read(text, (a, b, c, d, e, f))
    on = chips.find(chip)
    left, right = product.backward
    passes = {"forward": product, "gradient of the left": left, "gradient of the right": right}
    return View(
        _verdict(product, on),
        (_roles(product), _times(passes, on)),
        (
            Readout("forward", product.flops, "FLOPs", si(product.flops, "FLOPs")),
            Readout("backward", product.backward_flops, "FLOPs", si(product.backward_flops, "FLOPs")),
            Readout(
                "elements read and written",
                product.total_elements,
                "",
                count_in_words(product.total_elements),
            ),
            Readout("bytes in bf16", product.nbytes(), "B", si(product.nbytes(), "B")),
            Readout("intensity", product.intensity(), "FLOPs/byte"),
            Readout("sizes", 0, "", ", ".join(f"{i} {count(n)}" for i, n in product.sizes)),
        ),
    )


def _read(text: str, sizes: tuple[int, ...]) -> Einsum:
    """The einsum, its indices sized in the order in which they first appear."""
    inputs = text.replace("\N{RIGHTWARDS ARROW}", "->").partition("->")[0]
    letters = list(dict.fromkeys(letter for letter in inputs if letter.isalpha()))
    if len(letters) > _MOST:
        raise ValueError(
            f"{text!r} has {len(letters)} indices ({', '.join(letters)}), and there are sliders for {_MOST}; "
            "merge two that always appear together"
        )
    return arithmetic.einsum(text, **dict(zip(letters, sizes, strict=False)))


def _roles(product: Einsum) -> Grid:
    """A row per array, a column per index, colored by the index's role."""
    arrays = {"left": product.left, "right": product.right, "output": product.out}
    cells = [
        [_role(product, index) if index in indices else Cell("") for index, _ in product.sizes]
        for indices in arrays.values()
    ]
    says = [[_named(product, index) for index, _ in product.sizes]]
    return Grid(
        f"{product.text}: the role of each index",
        (*(f"{name} {indices}" for name, indices in arrays.items()), "role"),
        [index for index, _ in product.sizes],
        cells + says,
    )


def _role(product: Einsum, index: str) -> Cell:
    role, size = product.role(index), product.size[index]
    return Cell(count(size), _COLORS[role], f"{index}, of size {size:,}, is {role}", level=0.6)


def _named(product: Einsum, index: str) -> Cell:
    role = product.role(index)
    return Cell(role, None, f"{index} is {role}")


def _times(passes: dict[str, Einsum], on: Chip) -> Bars:
    return Bars(
        Scale(f"time on {on.name}", "s"),
        list(passes),
        (
            Series("math", [p.flops / on.flops_per_s(BF16) for p in passes.values()], 2),
            Series("HBM", [p.nbytes() / on.hbm_bytes_per_s for p in passes.values()], 3),
        ),
    )


def _verdict(product: Einsum, on: Chip) -> str:
    summed = f"sums over {join_and(product.contracting)}" if product.contracting else "has no sum"
    said = f"{product.text} {summed}"
    if product.batching:
        said += f", separately for each {join_and(product.batching)}"
    intensity, ridge = product.intensity(), rules.ridge(on)
    bound = "compute-bound" if intensity > ridge else "memory-bound"
    times = f"{product.backward_flops / product.flops:.3g}"
    said += (
        f". It takes {si(product.flops, 'FLOPs')} in the forward pass and {times} times as many in the "
        "backward pass. "
    )
    said += f"At {Readout('', rounded(intensity), 'FLOPs/byte')}, it is {bound} on the {on.name}, "
    return f"{said}whose ridge point is {ridge:.0f}."


EINSUM = Explorer(
    key="transformers.einsum",
    title="FLOPs and roles of an einsum",
    question="Which indices are contracting, batching or free, and what do an einsum and its gradients cost?",
    controls={
        "text": Notation(
            "einsum", "btkgh,bskh->btkgs", "two inputs and an output, one letter per index: BTD,DF->BTF"
        ),
        "a": Slider("size of the 1st index", 1, 65536, 8, "pow2"),
        "b": Slider("size of the 2nd", 1, 65536, 4096, "pow2"),
        "c": Slider("size of the 3rd", 1, 65536, 8, "pow2"),
        "d": Slider("size of the 4th", 1, 65536, 8, "pow2"),
        "e": Slider("size of the 5th", 1, 65536, 128, "pow2"),
        "f": Slider("size of the 6th", 1, 65536, 4096, "pow2"),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
    },
    view=_einsum,
)

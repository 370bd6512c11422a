"""Explorer that shows an AllGather and its transpose, a ReduceScatter, as matrices of zeros and ones."""

from scalingbook_book.reader.explorers.parts import Cell, Explorer, Grid, Readout, Slider, View

type Matrix = list[list[int]]


def gather_matrix(p: int, n: int) -> Matrix:
    """From n numbers on each of p chips to all p · n on every chip: p identities, one below the other."""
    return [[int(row % (p * n) == column) for column in range(p * n)] for row in range(p * p * n)]


def transposed(matrix: Matrix) -> Matrix:
    """Rows become columns."""
    return [list(column) for column in zip(*matrix, strict=True)]


def _transpose(*, p: int, n: int) -> View:
    gather = gather_matrix(p, n)
    return View(
        _verdict(p, n),
        (
            Grid(
                "AllGather: one column per number sent, one row per number received",
                _once([f"chip {row // (p * n)}" for row in range(p * p * n)]),
                _once([f"{column // n}" for column in range(p * n)]),
                _cells(gather, [column // n for column in range(p * n)]),
            ),
            Grid(
                "Its transpose, a ReduceScatter: one column per number sent, one row per number received",
                _once([f"chip {row // n}" for row in range(p * n)]),
                _once([f"{column // (p * n)}" for column in range(p * p * n)]),
                _cells(transposed(gather), [column // (p * n) for column in range(p * p * n)]),
            ),
        ),
        (
            Readout("AllGather matrix", len(gather), "", f"{p * p * n} × {p * n}"),
            Readout("ones in a column", p, "", f"{p}: each number goes to {p} chips"),
            Readout("its transpose", p * n, "", f"{p * n} × {p * p * n}"),
            Readout("ones in a row", p, "", f"{p}: each sum has {p} summands"),
        ),
    )


def _cells(matrix: Matrix, owners: list[int]) -> list[list[Cell]]:
    """Ones in the color of the chip that the number comes from."""
    return [
        [Cell("1", owner) if one else Cell() for one, owner in zip(row, owners, strict=True)]
        for row in matrix
    ]


def _once(names: list[str]) -> list[str]:
    """Each name where it first stands."""
    return [name if k == 0 or names[k - 1] != name else "" for k, name in enumerate(names)]


def _verdict(p: int, n: int) -> str:
    total = p * n
    keeps = f"its {n} sums" if n > 1 else "its sum"
    return (
        f"The AllGather copies each of the {total} numbers to {p} chips, so every column of its matrix "
        f"has {p} ones. In the transpose, every row has {p} ones: it adds {p} numbers, one from each "
        f"chip, and each chip keeps {keeps}. That is a ReduceScatter."
    )


TRANSPOSE = Explorer(
    key="sharding.transpose",
    title="The transpose of an AllGather",
    question="If n chips hold k numbers each, what does the transpose of their AllGather do?",
    controls={
        "p": Slider("number of chips n", 2, 4, 3),
        "n": Slider("numbers per chip k", 1, 3, 2),
    },
    view=_transpose,
)

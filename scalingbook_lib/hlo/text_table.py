"""Lays rows of text out in columns."""


def text_table(rows: list[tuple[str, ...]]) -> str:
    """Rows of text in columns, with the first row as the header; the last two columns are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) - 2
    lines = (
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)

"""The laboratory's training data: a book in which every byte is a token.

`batch(step, ...)` depends on the step alone, so a run that resumes at step s, on whatever mesh, reads the
same data as an uninterrupted run. The text is Lewis Carroll, "Alice's Adventures in Wonderland" (1865, in the
public domain), the Millennium Fulcrum Edition 2.9 as in the Canterbury corpus (`alice29.txt`, from the tests
of Brotli 1.2.1), with line endings as one byte.
"""

import functools
from pathlib import Path

import numpy as np

BOOK = Path(__file__).with_name("alice.txt")
BYTES = 256  # the vocabulary: every byte is a token
_HOP = 61_803  # bytes between sequence starts, modulo the book, so that sequences of a batch are far apart


@functools.cache
def book() -> np.ndarray:
    """Return the book as token ids."""
    return np.frombuffer(BOOK.read_bytes(), np.uint8).astype(np.int32)


def batch(step: int, *, batch: int, T: int, rows: slice = slice(None)) -> np.ndarray:
    """Return the sequences of a step, tokens[batch, T + 1]: T inputs and, shifted by one, T targets.

    `rows` selects some of them, so that a device or a process generates only its own.
    """
    starts = (step * batch + np.arange(batch)[rows]) * _HOP % (len(book()) - T)
    return book()[starts[:, None] + np.arange(T + 1)]

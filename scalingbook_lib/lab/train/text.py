"""What does the laboratory's model read? A real book, a byte at a time.

`batch(step, ...)` depends on the step alone: whoever resumes at step s, on whatever mesh, reads on as if
nothing had happened. The text is Lewis Carroll, "Alice's Adventures in Wonderland" (1865, in the public
domain), the Millennium Fulcrum Edition 2.9 as it stands in the Canterbury corpus (`alice29.txt`, read from
the tests of Brotli 1.2.1), with the ends of its lines as one byte.
"""

import functools
from pathlib import Path

import numpy as np

BOOK = Path(__file__).with_name("alice.txt")
BYTES = 256  # the vocabulary: every byte is a token
_HOP = 61_803  # sequences start this many bytes apart, round the book: neighbors in a batch are far apart


@functools.cache
def book() -> np.ndarray:
    """The book as tokens."""
    return np.frombuffer(BOOK.read_bytes(), np.uint8).astype(np.int32)


def batch(step: int, *, batch: int, T: int, rows: slice = slice(None)) -> np.ndarray:
    """The sequences of a step, tokens[batch, T + 1]: T to read and, one further on, T to predict.

    `rows` asks for some of them: a device, or a process, makes its own.
    """
    starts = (step * batch + np.arange(batch)[rows]) * _HOP % (len(book()) - T)
    return book()[starts[:, None] + np.arange(T + 1)]

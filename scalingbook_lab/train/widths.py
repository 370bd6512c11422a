"""Train the same small Transformer at several widths and learning rates, with and without muP.

`python -m scalingbook_lab.train.widths rows.csv` trains every combination of `WIDTHS`, `EXPONENTS` and
`SEEDS` in both parametrizations, and appends one row per run: the mean loss of the last `LAST` steps. It
skips the rows that the file already has. The book's file is `scalingbook_lib/evidence/data/own_widths.csv`.
Chapter: Training.
"""

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from scalingbook_lab.train import text
from scalingbook_lib import models

WIDTHS = (64, 128, 256)
BASE = 64  # the width at which both parametrizations are the same
EXPONENTS = tuple(range(-10, -2))  # learning rates 2^-10 to 2^-3
SEEDS = (0, 1)
STEPS, LAST, BATCH, T = 100, 20, 8, 32
FIELDS = ("D", "muP", "log2_rate", "seed", "loss")


def sized(D: int) -> models.Transformer:
    """Return the model of one width: heads of 8 elements, so only their number grows, and two layers."""
    return models.Transformer(name=f"width {D}", D=D, L=2, V=text.BYTES, N=D // 8, K=D // 16, H=8, F=3 * D)


def runs(D: int, mup: bool, steps: int = STEPS) -> Callable[[float, int], float]:
    """Compile all steps of one model; return the mean loss of the last ones by learning rate and seed."""
    import jax
    import numpy as np
    from jax.sharding import PartitionSpec

    from scalingbook_lab.train.trainer import Trainer, initial  # imported late: it starts the devices

    base = BASE if mup else None
    trainer = Trainer(sized(D), {"X": 1}, batch=BATCH, T=T, remat=False, base_width=base)
    tokens = np.stack([text.batch(step, batch=BATCH, T=T) for step in range(steps)])

    def one(state: Any, tokens: jax.Array, rate: jax.Array) -> jax.Array:
        # the rate is an input, so that one program serves all of them
        return jax.lax.scan(replace(trainer, rate=rate).local, state, tokens)[1]

    whole = PartitionSpec()
    program = jax.jit(
        jax.shard_map(one, mesh=trainer.devices, in_specs=whole, out_specs=whole, check_vma=False)
    )

    def loss(log2_rate: float, seed: int) -> float:
        losses = program(initial(trainer.model, seed, base), tokens, np.float32(2.0**log2_rate))
        return float(losses[-LAST:].mean())

    return loss


def main(argv: Sequence[str] | None = None) -> None:
    """Run every case that the file does not have yet."""
    parser = argparse.ArgumentParser(prog="scalingbook_lab.train.widths", description=__doc__)
    parser.add_argument("rows", type=Path, help="the CSV file to append to")
    path = parser.parse_args(argv).rows
    known = set()
    if path.exists():
        with path.open() as file:
            known = {tuple(row[name] for name in FIELDS[:-1]) for row in csv.DictReader(file)}
    else:
        path.write_text(",".join(FIELDS) + "\n")
    for D in WIDTHS:
        # at the base width both parametrizations are the same program
        for mup in (False, True) if D != BASE else (False,):
            loss = runs(D, mup)
            for log2_rate, seed in product(EXPONENTS, SEEDS):
                named = tuple(map(str, (D, int(mup), log2_rate, seed)))
                if named not in known:
                    with path.open("a") as file:
                        file.write(",".join((*named, f"{loss(log2_rate, seed):.4f}")) + "\n")


if __name__ == "__main__":
    main()

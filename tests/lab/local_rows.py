"""One of two processes that provide the rows that they read; the test of hosts runs it twice."""

import sys

import jax
import numpy as np

from scalingbook_lab import hosts
from scalingbook_lab.train import run as train
from scalingbook_lab.train import text

args = train.arguments().parse_args(sys.argv[1:])
trainer = train.join(args)

from scalingbook_lab.train.trainer import READ, SMALL, Trainer  # noqa: E402

mine = np.array_split(np.arange(trainer.batch), jax.process_count())[jax.process_index()]
rows = text.batch(7, batch=trainer.batch, T=trainer.T, rows=slice(mine[0], mine[-1] + 1))

place = jax.sharding.NamedSharding(trainer.devices, READ)
tokens = jax.make_array_from_process_local_data(place, rows)

assert tokens.shape == (trainer.batch, trainer.T + 1), tokens.shape
assert not tokens.is_fully_addressable
for ours, theirs in zip(tokens.addressable_shards, trainer.data(7).addressable_shards, strict=True):
    assert ours.index == theirs.index
    np.testing.assert_array_equal(ours.data, theirs.data)
another = Trainer(SMALL, trainer.mesh, rate=1e-3 * (1 + jax.process_index()))
report = args.folder / f"said{jax.process_index()}.txt"  # on standard output Gloo's threads write in between
with report.open("w") as file:
    print(hosts.gather_hosts(trainer), hosts.gather_hosts(another), sep="\n", file=file)

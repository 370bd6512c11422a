"""Does to real numbers what a strategy says: every device holds a dictionary of elements.

A move may use nothing but what the devices of its group hold: those that differ along the move's mesh axes.
So a move with a wrong group, a wrong block or a forgotten sum is found out.
"""

import itertools
from collections import defaultdict

from scalingbook_lib.notation import Mesh


class Machine:
    def __init__(self, sizes, extents):
        self.mesh = Mesh(**sizes)
        self.extents = extents
        self.devices = list(self.mesh.coordinates())

    def blocks(self, array):
        """For every device, the set of indices that it should hold."""
        held = array.blocks(self.mesh, **{name: self.extents[name] for name in array.names})
        return {device: set(itertools.product(*held[device])) for device in self.devices}

    def place(self, array, value):
        """Every device gets its block of the true array; a partial sum all on the first chip of its axes."""
        blocks = self.blocks(array)
        first = {d: all(d[self.axis(name)] == 0 for name in array.partial) for d in self.devices}
        return {d: {i: value(i) if first[d] else 0 for i in blocks[d]} for d in self.devices}

    def axis(self, name):
        return self.mesh.axes.index(name)

    def group(self, device, axes):
        """The devices that differ from this one along these axes at most."""
        ranges = [range(n) if name in axes else (device[k],) for k, (name, n) in enumerate(self.mesh.items)]
        return list(itertools.product(*ranges))

    def move(self, move, data):
        """The data after a move, and how many elements every device received from others."""
        wanted = self.blocks(move.after)
        if move.kind == "CollectivePermute":
            return self.permute(move, data, wanted)
        after, received = {}, {}
        for device in self.devices:
            group = self.group(device, move.axes)
            if move.kind in ("ReduceScatter", "AllReduce"):
                after[device] = {i: sum(data[other][i] for other in group) for i in wanted[device]}
                continue
            here = {i: data[device][i] for i in wanted[device] if i in data[device]}
            after[device] = dict(here)
            if move.kind != "slice":
                for other in group:
                    after[device] |= {i: data[other][i] for i in wanted[device] if i in data[other]}
            received[device] = len(after[device]) - len(here)
        self.check(wanted, after, move)
        return after, received

    def permute(self, move, data, wanted):
        """Whole shards change chips, each goes to exactly one."""
        fixed = [self.axis(name) for name in move.before.partial]
        holders = defaultdict(list)
        for device in self.devices:
            holders[frozenset(data[device]), tuple(device[k] for k in fixed)].append(device)
        after = {}
        for device in self.devices:
            source = holders[frozenset(wanted[device]), tuple(device[k] for k in fixed)].pop()
            after[device] = data[source]
        self.check(wanted, after, move)
        return after, {}

    def check(self, wanted, after, move):
        for device in self.devices:
            assert set(after[device]) == wanted[device], f"{move}: device {device} lacks some of its block"

    def run(self, moves, data):
        for move in moves:
            data, _ = self.move(move, data)
        return data

    def multiply(self, product, a, b):
        """Every device multiplies what it holds."""
        data = {}
        for device in self.devices:
            data[device] = defaultdict(int, dict.fromkeys(self.blocks(product.c)[device], 0))
            by_b = [(dict(zip(product.b.names, i, strict=True)), v) for i, v in b[device].items()]
            for i, value in a[device].items():
                at_a = dict(zip(product.a.names, i, strict=True))
                for at_b, other in by_b:
                    if all(at_b[n] == at_a[n] for n in at_b if n in at_a):
                        at = at_a | at_b
                        data[device][tuple(at[n] for n in product.c.names)] += value * other
        return {device: dict(values) for device, values in data.items()}

"""The collectives of training steps in other styles, as compiled for TPU slices, and how they were drawn."""

import csv
import itertools
import random
import sys
from collections import defaultdict
from dataclasses import fields, replace
from pathlib import Path

from scalingbook_lib import hlo
from scalingbook_lib.hlo.compiled_collectives import Collectives, CompiledCollective
from scalingbook_lib.hlo.known_differences import LOOKUPS
from tools.compiled import others
from tools.compiled.others import Style

TABLE = Path(__file__).with_suffix(".csv")
AXES = {"dp": "R", "fsdp": "X", "cp": "C", "tp": "Y"}  # of a program, and of a plan
SLICES = [
    "v5e:2x4",
    "v5p:2x2x1",
    "v5p:2x2x2",
    "v6e:4x4",
    "v4:2x2x4",
    "v5e:4x8",
    "v5p:2x4x4",
    "v5e:2x2",
    "v6e:2x4",
]
HALVES = ["tpu7x:2x2x1", "tpu7x:2x2x2", "tpu7x:2x2x4"]  # two devices a chip
SIZES = ((1024, 8, 4096), (2048, 16, 5632), (2048, 16, 8192), (3072, 24, 8192), (4096, 32, 14336))


def drawn() -> list[Style]:
    """Every program of the table."""
    t, u = _many(16, "t", 24), _many(61, "u", 20)
    toss, more = random.Random(5), [*_many(2026, "v", 16), *_many(7, "w", 16), *_many(99, "x", 12)]
    marked = [replace(style, marked=style.sp and toss.random() < 0.5) for style in more]
    m = [replace(s, name="m" + s.name[1:], marked=True) for s in t if s.sp and s.scan]
    return [*t, *u, *marked, *m, *_unlike(2028, "y", 18)]


def _many(seed: int, letter: str, n: int) -> list[Style]:
    r = random.Random(seed)
    return [_draw(r, f"{letter}{i:02d}") for i in range(n)]


def _unlike(seed: int, letter: str, n: int) -> list[Style]:
    """Variations that the other programs lack: TPU7x, context parallelism, ZeRO stages below 3."""
    r, found = random.Random(seed), list[Style]()
    while len(found) < n:
        kind, name = ("tpu7x", "cp", "zero")[len(found) % 3], f"{letter}{len(found):02d}"
        style = _draw(r, name, HALVES if kind == "tpu7x" else SLICES)
        if kind == "cp":
            ways = "tp" if style.tp > 1 else "fsdp"
            style = replace(style, cp=getattr(style, ways), attn="plain", sp=False, **{ways: 1})
        elif kind == "zero":
            style = replace(style, zero=len(found) // 3 % 3)
        loops = style.cp > 1 and (style.loss == "chunked" or style.E)
        if not loops and (kind == "tpu7x" or style.cp > 1 or (kind == "zero" and style.fsdp > 1)):
            found.append(style)
    return found


def _draw(r: random.Random, name: str, slices: list[str] = SLICES) -> Style:
    topo = r.choice(slices)
    torus = [int(n) for n in topo.partition(":")[2].split("x") if n != "1"]
    dp, fsdp, tp = _ways(r, [*torus, 2] if slices is HALVES else torus)
    D, N, F = r.choice(SIZES)
    knobs = {"name": name, "topo": topo, "dp": dp, "fsdp": fsdp, "tp": tp, "D": D, "N": N, "F": F}
    knobs |= {"K": r.choice([8, 8, 4, N]), "L": r.choice([3, 4, 6])}
    knobs |= {"V": r.choice([32000, 32768, 50304, 128256]), "T": r.choice([1024, 2048, 4096])}
    knobs |= {"seqs": r.choice([1, 2, 4]), "accum": r.choice([1, 1, 2, 4])}
    knobs |= {"loss": r.choice(["log_softmax", "optax", "lse_onehot", "f32dot", "chunked"])}
    knobs |= {"remat": r.choice(["none", "full", "full", "full", "dots_no_batch", "names"])}
    knobs |= {"scan": r.random() < 0.8, "tied": r.random() < 0.25, "gated": r.random() < 0.8}
    knobs |= {
        "opt": r.choice(["fp32", "fp32", "mixed", "master", "bf16"]),
        "attn": r.choice(["plain", "chunk"]),
    }
    knobs |= {"sp": tp > 1 and r.random() < 0.35, "clip": r.random() < 0.3}
    knobs |= {
        "style": r.choice(["einsum", "einsum", "flat", "fused"]),
        "pos": r.choice(["rope", "rope", "none"]),
    }
    knobs |= {"cast": r.choice(["use", "use", "start"]), "loss_mask": r.random() < 0.2}
    knobs |= {"acc": r.choice(["fp32", "fp32", "bf16"])}
    if r.random() < 0.12 and tp == 1:
        knobs |= {"gated": True, "E": 8, "k": 2, "F": 2048}  # experts of these programs always are
        knobs |= {"moe": r.choice(["capacity", "ragged"])}
    return Style(**knobs)


def _ways(r: random.Random, torus: list[int]) -> tuple[int, ...]:
    """The ways to make each axis of the mesh a product of whole axes of the torus."""
    found = set()
    for places in itertools.product(range(3), repeat=len(torus)):
        ways = [1, 1, 1]
        for n, place in zip(torus, places, strict=True):
            ways[place] *= n
        if ways[0] <= 4 and ways[2] <= 4:
            found.add(tuple(ways))
    return r.choice(sorted(found))


def sizes(style: Style) -> dict[str, int]:
    """The mesh of a program, by the letters of a plan."""
    return {letter: getattr(style, name) for name, letter in AXES.items() if getattr(style, name) > 1}


def compiled(style: Style) -> str:
    """The compiled collectives: kind, axes, type, whether the embedding's, and bytes of the step."""
    mesh = {name: n for name in AXES if (n := getattr(style, name)) > 1}
    sums: dict[tuple[str, ...], int] = defaultdict(int)
    for c in hlo.collectives(others.dumped(style, "after_optimizations"), mesh):
        place = c.source.rpartition("/")[2]
        place = place if place in LOOKUPS else "embed" if "embed" in c.source else "-"
        axes = "".join(sorted(AXES.get(name, name) for name in c.axes.split(",")))
        assert c.times
        sums[c.kind, axes, c.dtype, place] += c.times * c.nbytes
    return "; ".join(f"{' '.join(key)} {nbytes}" for key, nbytes in sorted(sums.items()))


def read(style: Style, text: str) -> Collectives:
    """A cell of the table as collectives that run once."""
    found = []
    for one in text.split("; "):
        kind, axes, dtype, place, nbytes = one.split()
        n = 1
        for letter in axes:
            n *= sizes(style).get(letter, 1)
        n = n if axes != "?" else style.dp * style.fsdp * style.cp * style.tp
        found.append(
            CompiledCollective(
                kind=kind, axes=axes, dtype=dtype, nbytes=int(nbytes), times=1, devices=n, source=f"/{place}"
            )
        )
    return Collectives(tuple(found))


def recorded() -> dict[Style, str]:
    """Every program, and its collectives."""
    return others.table(TABLE, "moved")


def write() -> None:
    """Compile the programs that the table lacks, which takes some seconds each."""
    known, there = {f.name: f.default for f in fields(Style)}, recorded()
    with TABLE.open("w", newline="") as file:
        rows = csv.DictWriter(file, [*known, "moved"], lineterminator="\n")
        rows.writeheader()
        for style in drawn():
            knobs = {k: getattr(style, k) for k in known if getattr(style, k) != known[k]}
            rows.writerow(knobs | {"moved": there.get(style) or compiled(style)})
            file.flush()


if __name__ == "__main__":
    for style in drawn():
        if style.name in sys.argv[1:]:
            print(style.name, compiled(style))
    if len(sys.argv) == 1:
        write()

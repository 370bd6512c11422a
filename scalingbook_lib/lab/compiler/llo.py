"""Which instructions does the TPU itself run? Bundles, one a cycle, with a slot for each of its units.

The compiler writes them out only where it was told so before it started, so another process compiles the
function once more. What is counted is the program as it stands: a loop's bundles once.
"""

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalingbook_lib.lab import devices as lab_devices
from scalingbook_lib.lab.compiler import child, slices
from scalingbook_lib.units import Result, percent

# libtpu reads its flags once, when it is loaded: no flag that is set later has any effect in this process.
FLAGS = "--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
BUNDLES = re.compile(r"^\d+-(.+?)-\d+-final_bundles\.txt$")
USE = re.compile(r"^\d+-(.+?)-\d+-final_hlo-static-per-bundle-utilization\.txt$")
RUNTIME = ("<late-initialization>", "<late-finalization>", "TLP")  # what surrounds every program
# A bundle's line begins with its address in hexadecimal, and perhaps two letters that mark a loop.
_BUNDLE = re.compile(r"^\s*(?:0x[0-9a-f]+|0)\s+(?:[A-Z]{2})?\s*:")


@dataclass(frozen=True)
class Bundles(Result):
    """A kernel's bundles: their text, the slots that one bundle has, and how many of them each uses.

    `source` is the path of scopes that it comes from, where that is known.
    """

    kernel: str
    slots: tuple[str, ...]
    capacity: tuple[int, ...]
    used: tuple[tuple[int, ...], ...] = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)
    source: str = ""

    def of(self, instruction: str) -> tuple[str, ...]:
        """The bundles that hold an instruction: `of("vmatmul")`."""
        return tuple(line for line in self.lines if instruction in line)

    def filled(self, slot: str) -> float:
        """The share of a unit's slots that are used, all bundles together."""
        k = self._place(slot)
        return sum(row[k] for row in self.used) / (self.capacity[k] * len(self.used) or 1)

    def idle(self, slot: str) -> int:
        """The bundles in which a unit has nothing to do."""
        return sum(not row[self._place(slot)] for row in self.used)

    def _place(self, slot: str) -> int:
        if slot not in self.slots:
            raise ValueError(f"no unit {slot!r}; the slots are {', '.join(self.slots)}")
        return self.slots.index(slot)

    def __str__(self) -> str:
        units = ", ".join(f"{slot} {percent(self.filled(slot))}" for slot in self.slots if self.filled(slot))
        return f"{self.kernel}: {len(self.used):,} bundles; slots used: {units}"


def dump(fn: Callable, args: tuple, how: dict[str, Any]) -> tuple[Bundles, ...]:
    """Compile in another process that writes out the bundles of every kernel, and read them."""
    if reason := slices.why_not():
        raise slices.NoTpuCompiler(reason)
    lab_devices.prepare()
    asked = pickle.dumps({"fn": child.packed(fn), "args": args, "how": how})
    with tempfile.TemporaryDirectory(prefix="llo-") as folder:
        told = os.environ | {"LIBTPU_INIT_ARGS": FLAGS.format(folder=folder)}
        command = [sys.executable, "-m", child.__name__]
        ran = subprocess.run(command, input=asked, env=told, capture_output=True, check=False)
        if ran.returncode:
            last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"the second process could not compile it: {''.join(last)}")
        return read(Path(folder))


def read(folder: Path) -> tuple[Bundles, ...]:
    """The kernels whose bundles a compiler left in a folder, in the order in which it wrote them."""
    uses = {m[1]: path for path in folder.iterdir() if (m := USE.match(path.name))}
    texts = {m[1]: path for path in sorted(folder.iterdir()) if (m := BUNDLES.match(path.name))}
    kernels = (k for k in texts if k in uses and k not in RUNTIME)
    return tuple(_kernel(name, texts[name].read_text(), uses[name].read_text()) for name in kernels)


def _kernel(name: str, text: str, use: str) -> Bundles:
    # the file has a title, the slots' names, how many of each a bundle has, a title, and a row for each
    # bundle
    _, slots, capacity, _, *rows = use.strip().splitlines()
    return Bundles(
        name,
        tuple(slot.strip() for slot in slots.split(",")),
        tuple(map(int, capacity.split())),
        tuple(tuple(map(int, row.split())) for row in rows),
        # without remarks and places in files
        tuple(
            re.sub(r"\s*/\*.*?(\*/|$)", "", line).rstrip()
            for line in text.splitlines()
            if _BUNDLE.match(line)
        ),
    )

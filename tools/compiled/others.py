"""Training steps in the styles of other projects: plain JAX and GSPMD, not the laboratory's Transformer."""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path

from scalingbook_lib import models
from scalingbook_lib.training import Plan
from scalingbook_lib.units import BF16, FP32

TABLE = Path(__file__).with_suffix(".csv")
LOGIT_BYTES = {"log_softmax": None, "optax": None, "lse_onehot": 4.0, "f32dot": 8.0, "chunked": 0.75}
"""For each loss: whether its matmul is in 16 bits, and whether its softmax is materialized or chunked."""
REMAT = {"names": "save:q,k,v,o", "names2": "save:gate,up"}
STATE = {  # weights, gradients, moments, master
    "fp32": (FP32, FP32, FP32, None),
    "mixed": (BF16, BF16, FP32, None),
    "master": (BF16, BF16, FP32, FP32),
    "bf16": (BF16, BF16, BF16, None),
}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How one program is written, and for which model and slice."""

    name: str
    topo: str = "v5p:2x2x1"
    dp: int = 1
    fsdp: int = 1
    tp: int = 1
    ep: int = 1
    D: int = 2048
    L: int = 4
    N: int = 16
    K: int = 8
    H: int = 128
    F: int = 8192
    V: int = 32768
    T: int = 1024
    seqs: int = 4  # sequences in a microbatch on a data rank
    accum: int = 1  # number of microbatches
    loss: str = "log_softmax"
    mask: str = "causal"  # or "segment", "none"
    loss_mask: bool = False
    remat: str = "none"
    scan: bool = True
    tied: bool = False
    gated: bool = True
    opt: str = "fp32"
    attn: str = "plain"  # materialized scores; or "chunk", "splash"
    sp: bool = False  # tokens sharded over tp between the matmuls
    clip: bool = False  # gradients clipped by their norm, so all exist at once
    cast: str = "use"  # where fp32 weights are rounded: at their use, or at the start
    style: str = "einsum"  # weights in three dimensions; or "flat", "fused"
    pos: str = "rope"
    E: int = 0
    k: int = 2
    moe: str = "capacity"  # or "ragged"
    acc: str = "fp32"  # dtype of the accumulation over microbatches
    marked: bool = False  # annotates which tokens are gathered before matmuls, and the KV-head axes
    cp: int = 1  # keys and values are gathered
    zero: int = 3  # below 3 XLA is told how the optimizer state is sharded, and for 2 also the gradients

    @property
    def batch(self) -> int:
        """The sequences of a step."""
        return self.seqs * self.accum * self.dp * self.fsdp

    def model(self) -> models.Transformer:
        """Return the model as a `models.Transformer`."""
        names = ("name", "D", "L", "V", "N", "K", "H", "F", "gated", "tied")
        experts = models.Experts(E=self.E, k=self.k, F=self.F) if self.E else None
        return models.Transformer(**{n: getattr(self, n) for n in names}, experts=experts)

    def plan(self) -> Plan:
        """Return the style as a `training.Plan`."""
        weights, gradients, moments, master = STATE[self.opt]
        return Plan(
            dp=self.dp,
            fsdp=self.fsdp,
            tp=self.tp,
            ep=self.ep,
            cp=self.cp,
            context="gather",
            zero=self.zero,
            sequence_parallel=self.sp,
            microbatch=self.seqs,
            remat=REMAT.get(self.remat, self.remat),
            weights=weights,
            gradients=gradients if self.accum == 1 else FP32 if self.acc == "fp32" else BF16,
            moments=moments,
            master=master,
            logit_bytes=LOGIT_BYTES[self.loss],
        )


def recorded() -> dict[Style, int]:
    """Return every compiled program with its bytes on one device: arguments and temporaries."""
    return {style: int(needed) for style, needed in table(TABLE, "needed").items()}


def table(path: Path, column: str) -> dict[Style, str]:
    """Return the programs of a table with one of its columns."""
    found = {}
    kinds = {f.name: type(f.default) for f in fields(Style)}
    read = {int: int, bool: lambda word: word == "True", str: str}
    with path.open() as file:
        for row in csv.DictReader(file):
            told = row.pop(column)
            knobs = {k: read.get(kinds[k], str)(v) for k, v in row.items() if v != ""}
            found[Style(**knobs)] = told
    return found


def buffers(style: Style) -> int:
    """Return the bytes of one device, as assigned by the compiler."""
    return held(dumped(style, "after_optimizations-buffer-assignment"))


def dumped(style: Style, what: str, most_s: float = 300) -> str:
    """Return a text that a compilation dumps; the compilation is ended before it generates code."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"XLA_FLAGS": f"--xla_dump_to={folder} --xla_dump_hlo_as_text", "JAX_PLATFORMS": "cpu"}
        knobs = json.dumps({f.name: getattr(style, f.name) for f in fields(style)})
        code = f"from tools.compiled import others_step as s; s.compile({knobs!r})"
        child = subprocess.Popen(
            [sys.executable, "-c", code], env=os.environ | given, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + most_s
        try:
            while time.monotonic() < until and child.poll() is None:
                if next(Path(folder).glob("*jit_step*_after_buffer_assignment.txt"), None):
                    break  # written after the file that is read
                time.sleep(0.2)
            (text,) = Path(folder).glob(f"*jit_step*{what}.txt")
            return text.read_text()
        finally:
            child.kill()
            child.wait()


def held(text: str) -> int:
    """Return the HBM (color 0) of arguments, results in memory of their own, and the temporaries."""
    found = re.findall(r"^allocation \d+: size (\d+),( color \d+,)?(.*)", text, re.MULTILINE)
    held = ("parameter", "preallocated-temp", "maybe-live-out")
    return sum(int(n) for n, color, rest in found if not color and any(word in rest for word in held))


if __name__ == "__main__":
    for style in recorded():
        if style.name in sys.argv[1:]:
            print(style.name, buffers(style), recorded()[style])

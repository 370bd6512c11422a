"""How do the compiler's words enter the library? `python -m tools.record` asks it again and writes them down.

Ten minutes on two cores; `python -m tools.record lines` for one record alone. It needs libtpu, but no TPU.
"""

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from scalingbook_lib.evidence import compiled

FOLDER = Path(compiled.__file__).parent
HEADS = {
    "lines": "Lines that the TPU's compiler wrote",
    "cycles": "Estimates of the TPU's compiler: cycles by the rows M of X[M, 8192] · W[8192, 8192]",
    "bundles": "Slots that the TPU's compiler filled, summed over strips of each kernel",
}
REMARK = "# ruff: noqa: E501   written by tools/record.py from what the compiler said"


def _lines() -> list[dict]:
    from scalingbook_lib.lab.compiler import records

    return [dataclasses.asdict(line) for line in records.lines()]


def _cycles() -> dict:
    from scalingbook_lib.evidence.compiled import cycles
    from scalingbook_lib.lab.compiler import records

    asked = [(topology, kind) for kind in ("bf16", "int8") for topology in cycles.TARGETS]
    known = (ask for ask in asked if ask != ("tpu7x:1x1x1", "int8"))  # no int8 rate is documented for it
    return {ask: records.table(*ask, cycles.ROWS) for ask in known}


def _bundles() -> dict:
    from scalingbook_lib.lab.compiler import records

    return {
        kernel.title: {
            "bundles": kernel.bundles,
            "capacity": dict(kernel.capacity),
            "used": {unit: " ".join(map(str, used)) for unit, used in kernel.used.items()},
        }
        for kernel in records.bundles()
    }


RECORDS: dict[str, Callable] = {"lines": _lines, "cycles": _cycles, "bundles": _bundles}


def write(name: str) -> Path:
    """Make one record again."""
    path = FOLDER / f"{name}_kept.py"
    text = f'"""{HEADS[name]}, as it was kept; see {name}.py."""\n\n{REMARK}\n\nKEPT = {RECORDS[name]()!r}\n'
    path.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(path)], check=True)
    return path


if __name__ == "__main__":
    for asked in sys.argv[1:] or RECORDS:
        print(write(asked))

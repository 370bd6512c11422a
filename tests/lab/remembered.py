"""What the TPU compiler said of a program's memory, asked again only where program or compiler is another.

The compiler says the same of the same program, to the byte and on every machine; some take it half a minute.
The memory is kept by a digest of the program that it is given, its target and the compiler's version. To keep
what is not kept yet: `REMEMBER=1 .venv/bin/python -m pytest` of the tests that ask for `remembered`.
"""

import functools
import hashlib
import json
import os
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

TABLE = Path(__file__).with_name("remembered.json")
FIGURES = ("argument", "output", "alias", "temp")
NAMES = [f"{name}_size_in_bytes" for name in FIGURES]


class Remembered(SimpleNamespace):
    """As much of a compiled program as its memory."""

    output_shardings = ()  # the digest says for which devices it was compiled

    def memory_analysis(self):
        host = {f"host_{name}_size_in_bytes": 0 for name in FIGURES}
        return SimpleNamespace(**host, **vars(self))

    def as_text(self):
        return ""  # a test that reads a program compiles it


def digest(lowered, topology):
    """Of all that the compiler is given: the program with its shardings, where to, and which compiler."""
    told = (lowered.as_text(), topology, metadata.version("libtpu"))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


@functools.cache
def kept():
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def keep(key, found):
    """Write it down where that is asked for; it is handed on."""
    if os.environ.get("REMEMBER"):
        kept()[key] = found
        TABLE.write_text(json.dumps(dict(sorted(kept().items())), indent=1) + "\n")
    return found


@pytest.fixture
def remembered(monkeypatch):
    """Call it with a topology: from then on a program whose memory is kept is not compiled again."""
    compiling = jax.stages.Lowered.compile

    def for_topology(topology):
        def compile(lowered, **options):
            key = digest(lowered, topology)
            if key in kept() and not any(options.values()):
                return Remembered(**kept()[key])
            program = compiling(lowered, **options)
            found = program.memory_analysis()
            on_host = any(getattr(found, f"host_{name}_size_in_bytes") for name in FIGURES)
            if not on_host:
                keep(key, {name: getattr(found, name) for name in NAMES})
            return program

        monkeypatch.setattr(jax.stages.Lowered, "compile", compile)

    return for_topology

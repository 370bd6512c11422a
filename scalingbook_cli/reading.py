"""Parses typed arguments: counts, bytes, dtypes, chips, machines, models and meshes.

Every function returns a value of the library, or raises a ValueError with one sentence that says what to
write.
"""

import os
import re
import sys
from collections.abc import Mapping
from functools import partial
from math import ulp
from pathlib import Path

from scalingbook_lib import models, units
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from scalingbook_lib.machines import Chip, Cluster, Machine, chip_files, chips, instances, machine_names
from scalingbook_lib.machines.machine_names import NamedMachine
from scalingbook_lib.training import PEAK, TrainingEfficiency
from scalingbook_lib.training.plan import REMAT
from scalingbook_lib.training.remat import named
from scalingbook_lib.units import DType, binary, parse
from scalingbook_lib.words import pluralize

MOST = 2**53  # larger integers are not exact as floats
MOST_CHARACTERS = 200
MOST_MODEL = 2_000_000  # characters; `from_hf` refuses more
MOST_FILE = 2**26  # bytes
MOST_AMOUNT = 1e30  # FLOPs of a run, bytes of an array
CALIBRATED = "calibrated"
_HF_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")  # organization/model
_MESH = re.compile(r"([A-Z])\s*=?\s*([0-9]{1,9})")


def whole(text: str, *, least: int = 1, words: tuple[str, ...] = ()) -> int:
    """A count: '4096', '8Ki' (8,192), '16M' (16,000,000); `words` are the accepted units."""
    read = parse(text)
    if read.unit not in ("", *words):
        raise ValueError(f"{text!r} has the unit {read.unit}; write a plain count, as in 4096, 8Ki or 16M")
    if not least <= read.value <= MOST or read.value != int(read.value):
        raise ValueError(
            f"{text!r} is not a whole number from {least} to 2^53; write one as in 4096, 8Ki or 16M"
        )
    return int(read.value)


def list_length(text: str) -> int:
    """A number of rows to list, 1 to 1,000."""
    if (n := whole(text)) > 1000:
        raise ValueError(f"{text!r} is too long a list; write at most 1000")
    return n


def amount(text: str, unit: str) -> float:
    """A number of bytes ('B') or FLOPs ('FLOP'), with or without the unit: '2TiB', '16M', '8.6 GFLOPs'."""
    read = parse(text)
    example = {"B": "16M, 2TiB or 3.5 GB", "FLOP": "8.6G, 2^40 or 3.5 TFLOPs"}[unit]
    if read.unit not in ("", unit):
        raise ValueError(f"{text!r} has the unit {read.unit}; write {example}")
    if not 0 <= read.value <= MOST_AMOUNT:
        raise ValueError(f"{text!r} is not between 0 and {MOST_AMOUNT:g}; write {example}")
    return int(read.value) if read.value.is_integer() else read.value


def sequences(text: str, T: int) -> int:
    """A batch in sequences; a number with a prefix or a unit counts tokens ('16Mi')."""
    if re.fullmatch(r"[0-9][0-9_,]*", text.strip()):
        return whole(text)
    n = whole(text, words=("tokens",))
    if n % T:
        near = max(n // T, 1)
        raise ValueError(
            f"{text!r} is not a whole number of sequences of {T:,} tokens; write '{near * T:,} tokens', "
            f"or {near} for {pluralize(near, 'sequence')}"
        )
    return n // T


def remat(text: str) -> str:
    """A policy of rematerialization: its name, or the tensors that it names, as in 'save:q,k,v'."""
    if text not in REMAT and ":" not in text:
        raise ValueError(
            f"{text!r} is not a policy; write one of {', '.join(REMAT)}, or as in 'save:q,k,v;offload:in'"
        )
    named(text)
    return text


def counts(text: str) -> tuple[int, ...]:
    """Whole numbers, separated by commas: '7,8,8,7'."""
    return tuple(whole(part, least=0) for part in text.split(","))


def overlap(text: str) -> str | float:
    """'full', 'none', or a share between them."""
    return text.lower() if text.lower() in ("full", "none") else share(text)


def efficiency(text: str) -> TrainingEfficiency | DeviceBenchmark | None:
    """An efficiency: 'peak', the share of matmul peak ('40%'), or a `scalingbook measure` record.

    None for 'calibrated', which depends on the chip and the dtype.
    """
    if text.endswith(".json"):
        return DeviceBenchmark.read(file(text))
    if text.lower() in (PEAK.name, CALIBRATED):
        return PEAK if text.lower() == PEAK.name else None
    if not (part := share(text)):
        raise ValueError(
            f"{text!r} is not an efficiency; write peak, calibrated, a share of the peak as in 40%, or a "
            "record of `scalingbook measure --out`, as in mine.json"
        )
    return TrainingEfficiency.flat(part)


def serving_efficiency(text: str) -> str | DeviceBenchmark:
    """'peak', 'calibrated', or a `scalingbook measure` record."""
    if text.endswith(".json"):
        return DeviceBenchmark.read(file(text))
    if text.lower() not in (PEAK.name, CALIBRATED):
        raise ValueError(
            f"{text!r} is not an efficiency; write peak, calibrated, or a record as in mine.json"
        )
    return text.lower()


def positive(text: str) -> float:
    """A number above 0, plain or in percent: '0.4', '40%'."""
    return _number(text, "is not a positive number; write one as in 0.4, 40% or 2.5")


def seconds(text: str) -> float:
    """A time above 0 in seconds: '50ms', '2 s', '0.05'."""
    return _number(text, "is not a time above 0; write one as in 50ms, 2s or 0.05", unit="s")


def share(text: str) -> float:
    """A share from 0 to 1: '0.4', '40%'."""
    return _number(text, "is not a share; write one from 0 to 1, as in 0.4 or 40%", least=0.0, most=1.0)


def _number(
    text: str, said: str, *, unit: str = "", least: float = ulp(0), most: float = MOST_AMOUNT
) -> float:
    """A number in that unit or without one, within the limits."""
    read = parse(text)
    if read.unit not in ("", unit) or not least <= read.value <= most:
        raise ValueError(f"{text!r} {said}")
    return read.value


def dtype(text: str) -> DType:
    """A dtype in which numbers are stored: 'bf16', 'bfloat16', 'fp8_e4m3', 'mxfp4'."""
    return units.dtype(text)


def matrix_dtype(text: str) -> DType:
    """A dtype that matrix units multiply: 'bf16', 'FP8', and fp4 for 'nvfp4'."""
    return units.matrix_unit_dtype(units.dtype(text))


def dtype_or_none(text: str) -> DType | None:
    """A dtype, or None for 'none'."""
    return None if text.lower() == "none" else dtype(text)


def chip(text: str, given: Mapping[str, Chip] | None = None) -> Chip:
    """A chip: one of the `given` by its name, a catalog name ('v5p', 'H100 SXM', 'A100-40GB'), or the path
    of a file of specifications.
    """
    own = (given or {}).get(text.strip().lower())
    if own is not None:
        return own
    if text.endswith(".json"):
        path = file(text)
        measured = chip_files.is_benchmark_record(path)
        return DeviceBenchmark.read(path).as_chip() if measured else chip_files.read(path)
    try:
        return chips.find(text)
    except ValueError as error:
        if instance := instances.find(text):
            raise ValueError(
                f"{text!r} is an instance with {instance.chips} {instance.chip}, and a chip is needed here; "
                f"write {instance.chip.removeprefix('TPU ').lower().replace(' ', '-')}"
            ) from error
        told = "`scalingbook chips` lists all chips, and --chip-file reads the specifications of another"
        raise ValueError(f"{error}; {told}") from error


def machine(text: str, given: Mapping[str, Chip] | None = None) -> Machine:
    """A machine: a slice 'v5p:16x20x28' or 'v5p-128', a cluster 'h100:1024', '8xH100' or '2x8xH100', one
    domain 'h100', instances 'p5.48xlarge:4', or a chip of a file, alone ('mine.json') or in a number
    ('mine.json:8').
    """
    return named_machine(text, given).machine


def named_machine(text: str, given: Mapping[str, Chip] | None = None) -> NamedMachine:
    """The machine, with a note on what its name was taken to mean."""
    if text.endswith(".json"):
        return NamedMachine(Cluster.of(chip(text, given), 1))
    return machine_names.read(text, partial(chip, given=given))


def shape(text: str) -> tuple[int, int, int]:
    """B, D and F of a matmul: '64x8192x8192', '16Ki,8192,28672'."""
    parts = re.split(r"[x×·*,]", text)
    sides = tuple(whole(part) for part in parts) if any(part.strip() for part in parts) else ()
    if len(sides) != 3:
        raise ValueError(
            f"{text!r} has {len(sides)} sizes; write B, D and F of X[B, D] · W[D, F], as in 64x8192x8192"
        )
    return sides[0], sides[1], sides[2]


def mesh(text: str) -> dict[str, int]:
    """Mesh axes and their sizes: 'X=8,Y=128', 'X8 Y128'."""
    sizes: dict[str, int] = {}
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        match = _MESH.fullmatch(part)
        if match is None or match[1] in sizes:
            raise ValueError(
                f"{text!r} is not a mesh; name each axis once, by a capital letter, as in X=8,Y=128"
            )
        sizes[match[1]] = int(match[2])
    if not 1 <= len(sizes) <= 6:
        raise ValueError(f"{text!r} has {len(sizes)} mesh axes; write one to six, as in X=8,Y=128")
    return sizes


def share_or_seconds(text: str) -> tuple[str, float]:
    """A share of a run ('10%') or a time ('2ms')."""
    if text.strip().endswith("%"):
        return "share", share(text)
    try:
        return "s", seconds(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is neither a share nor a time; write one as in 10% or 2ms") from error


def share_or_bytes(text: str) -> tuple[str, float]:
    """A share of a device's memory ('90%') or bytes ('80GiB')."""
    if text.strip().endswith("%"):
        return "share", share(text)
    return "bytes", amount(text, "B")


def path(text: str) -> str:
    """The path of a file, FILE.py:FUNCTION, or '-', which the command opens itself."""
    if not text.strip() or "\0" in text:
        raise ValueError("a path cannot be empty; write the path of a file")
    return text


def model(text: str) -> models.Transformer:
    """A model: a name ('llama-3-8b'), an id of Hugging Face ('Qwen/Qwen3-8B'), the path of a config.json
    or of its folder, the text of one, or '-' for standard input.

    A name that says how the weights are stored ('Qwen/Qwen3-8B-FP8') is the model with such weights.
    """
    if text == "-":
        return models.from_hf(_piped())
    if text.lstrip().startswith("{"):
        return models.from_hf(text)
    path = os.path.join(text, "config.json") if os.path.isdir(text) else text
    named = not text.endswith(".json") and (os.sep not in text or _HF_ID.fullmatch(text))
    try:
        if named and not (os.sep in text and os.path.exists(text)):
            return models.find_as_stored(text)
    except models.ModelError:
        if not os.path.exists(text):
            raise
    return models.from_hf(file(path))


def file(text: str) -> Path:
    """The path of a regular file or a missing one; raises a ValueError for devices, pipes and large files."""
    plain = os.path.isfile(text) and os.path.getsize(text) <= MOST_FILE
    # shells pass pipes for <(command)
    if os.path.exists(text) and not plain and not text.startswith(("/dev/fd/", "/dev/stdin")):
        raise ValueError(
            f"{text!r} is not a regular file of at most {binary(MOST_FILE)}; write the path of one"
        )
    return Path(text)


def _piped() -> str:
    try:
        text = sys.stdin.read(2 * MOST_MODEL)
    except (OSError, ValueError) as error:
        raise ValueError("standard input is not UTF-8 text; pipe a config.json into it") from error
    if "{" not in text:
        raise ValueError("standard input does not contain a config.json; pipe one into it, from { to }")
    return text

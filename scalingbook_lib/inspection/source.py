"""Reads what a saved program says about itself: its devices, mesh, arguments, and lines of Python.

XLA's text has neither the names of mesh axes nor the shardings of arguments. `with_notes` writes them as one
comment line in front of the text, which XLA and `hlo.parse` ignore; `read` finds them again.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any

from scalingbook_lib.hlo import HloError, parse, replica_groups
from scalingbook_lib.hlo.module import COLLECTIVE_OPCODES, HloModule, Instruction

NOTE = "// scalingbook: "
_PARTITIONS = re.compile(r"\bnum_partitions=(\d+)")
_REPLICAS = re.compile(r"\breplica_count=(\d+)")
_TABLE = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)$", re.M)
_OLD_LINE = re.compile(r'source_file="([^"]+)" source_line=(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a program: its name, one device's shard, and the mesh axes that replicate it.

    `dims` is the whole array, `replicated` is None if the program does not say how the argument is sharded.
    """

    name: str
    dtype: str
    shard: tuple[int, ...]
    dims: tuple[int, ...]
    nbytes: float
    replicated: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """The memory of one device in bytes, as XLA reports it: padding included."""

    arguments: int
    outputs: int
    aliased: int
    temporaries: int


@dataclass(frozen=True, kw_only=True)
class ProgramSource:
    """A program's text, and what is known about it besides the text.

    `mesh` maps axes to sizes, or is empty if nobody said. `machine` is the name of a slice or cluster, "" if
    unknown. `platform` is tpu, gpu or cpu. `notes` says how unstated facts were inferred.
    """

    text: str = field(repr=False)
    mesh: Mapping[str, int] = field(default_factory=dict)
    machine: str = ""
    platform: str = ""
    arguments: tuple[Argument, ...] = ()
    memory: MemoryUse | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def module(self) -> HloModule:
        """The parsed text. Raises an HloError that says which line could not be read."""
        try:
            return parse(self.text)
        except HloError as error:
            raise HloError(f"{error}{_place(self.text)}") from error
        except (ValueError, IndexError, KeyError, AttributeError, RecursionError) as error:
            raise HloError(
                f"the text is not the whole text of a compiled program{_place(self.text)}; write "
                "compiled.as_text() to a file again"
            ) from error

    @property
    def name(self) -> str:
        """The name of the module, such as jit_step."""
        found = re.match(r"HloModule\s+([\w.\-]+)", self.module.header)
        return found[1] if found else "a program"

    @cached_property
    def devices(self) -> int:
        """The number of devices for which the program was partitioned: by its header, else by its groups."""
        for form in (_PARTITIONS, _REPLICAS):
            found = form.search(self.module.header)
            if found and int(found[1]) > 1:
                return int(found[1])
        return _devices_of_groups(self.module)

    @cached_property
    def _tables(self) -> dict[str, dict[int, str]]:
        """The tables of source locations in front of the computations, by title and number."""
        head = self.text[: self.text.find("\n%")] if "\n%" in self.text else self.text
        parts = _TABLE.split(head)
        return {title: dict(_numbered(body)) for title, body in zip(parts[1::2], parts[2::2], strict=True)}

    def line_of(self, instruction: Instruction) -> str:
        """The line of Python from which an instruction comes, such as 'train.py:12'; "" if not stated."""
        if old := _OLD_LINE.search(instruction.attributes):
            return f"{PurePath(old[1]).name}:{old[2]}"
        frame = re.search(r"stack_frame_id=(\d+)", instruction.attributes)
        tables = self._tables
        if frame is None or "StackFrames" not in tables:
            return ""
        at = _number(tables["StackFrames"].get(int(frame[1]), ""), "file_location_id")
        place = tables["FileLocations"].get(at, "")
        name = tables["FileNames"].get(_number(place, "file_name_id"), "").strip('"')
        return f"{PurePath(name).name}:{_number(place, 'line')}" if name else ""


def read(text: str) -> ProgramSource:
    """The program of a text, with its notes if `with_notes` wrote some.

    Raises an HloError if the text is not a compiled program or its notes are damaged.
    """
    first, _, rest = text.lstrip("\ufeff \n\r\t").partition("\n")
    if not first.startswith(NOTE):
        return _inferred(ProgramSource(text=text))
    try:
        told = json.loads(first.removeprefix(NOTE))
        arguments = tuple(_argument(one) for one in told.pop("arguments", ()))
        memory = MemoryUse(**told.pop("memory")) if told.get("memory") else None
        known = {key: told[key] for key in ("mesh", "machine", "platform") if key in told}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HloError(
            f"line 1 begins with {NOTE.strip()!r}, but the rest of it is not the note that inspect --save "
            f"writes ({error}); delete the line, and give --mesh and --slice instead"
        ) from error
    return _inferred(ProgramSource(text=rest, arguments=arguments, memory=memory, **known))


def with_notes(source: ProgramSource) -> str:
    """The text of a program, after one line that states its mesh, machine, arguments and memory.

    Files are named without their folders, which are those of one machine.
    """
    told: dict[str, Any] = {"mesh": dict(source.mesh), "machine": source.machine, "platform": source.platform}
    told["arguments"] = [asdict(one) for one in source.arguments]
    told["memory"] = asdict(source.memory) if source.memory else None
    return f"{NOTE}{json.dumps(told)}\n{_without_folders(source.text)}"


def _without_folders(text: str) -> str:
    """A text whose table of file names, and whose older `source_file`s, have no folders."""
    head, title, rest = text.partition("\nFileNames\n")
    if title:
        names, _, rest = rest.partition("\n\n")
        names = re.sub(r'^(\d+ ").*[/\\]', r"\1", names, flags=re.M)
        text = f"{head}{title}{names}\n\n{rest}"
    return re.sub(r'(source_file=")[^"]*/', r"\1", text)


def _place(text: str) -> str:
    """The first line of a text that cannot be read, such as ' (line 12: ...)'; "" if each line can be."""
    for number, line in enumerate(text.splitlines(), 1):
        if not re.match(r"\s+(?:ROOT )?%?[\w.\-]+ = ", line):
            continue
        try:
            parse(f"ENTRY %main () -> f32[] {{\n{line}\n}}")
        except (HloError, ValueError, IndexError, KeyError, AttributeError):
            return f" (line {number:,}: {line.strip()[:60]!r})"
    return ""


def _devices_of_groups(module: HloModule) -> int:
    """One more than the largest device number in the groups of a program; 1 without groups."""
    most = 0
    for computation in module.computations.values():
        for i in computation.instructions.values():
            if i.opcode.removesuffix("-start") in COLLECTIVE_OPCODES:
                groups = [*replica_groups.read(i.attributes, 1), *replica_groups.pairs(i.attributes)]
                most = max([most, *(max(group) for group in groups if group)])
    return most + 1


def _argument(told: Mapping[str, Any]) -> Argument:
    """An argument of the notes, whose lists become tuples."""
    values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in told.items()}
    return Argument(**values)


def _inferred(source: ProgramSource) -> ProgramSource:
    """The source with the platform that its text shows, and the arguments of its entry computation."""
    values = {name: getattr(source, name) for name in ProgramSource.__dataclass_fields__}
    if not source.platform:
        values["platform"] = platform_of(source.text)
    if not source.arguments:
        entry = source.module.entry.instructions.values()
        values["arguments"] = tuple(
            _of_parameter(i, source) for i in entry if i.opcode == "parameter" and len(i.shapes) == 1
        )
    return ProgramSource(**values)


def platform_of(text: str) -> str:
    """The kind of device that a program's text was compiled for: tpu, gpu, cpu, or "" if it does not show."""
    # only TPU layouts have tiles and only libtpu estimates cycles; XLA:GPU names its libraries and emitters
    if re.search(r":T\(\d+(,\d+)?\)|estimated_cycles", text):
        return "tpu"
    if re.search(r"__(cublas|cudnn|triton)|\"gpu_config\"|triton_gemm|gemm_fusion", text):
        return "gpu"
    return "cpu" if re.search(r"xla_cpu|__onednn|ynn_fusion|\boutfeed_cpu|parallel_\w*fusion", text) else ""


def _of_parameter(i: Instruction, source: ProgramSource) -> Argument:
    """An argument by its instruction, with the sharding that older versions of XLA print with it."""
    (shape,) = i.shapes
    name = i.quoted("op_name").replace("\\'", "'") or i.name
    axes, factors = _printed_sharding(i.attributes, source)
    whole = tuple(n * f for n, f in zip(shape.dims, factors or (1,) * len(shape.dims), strict=True))
    return Argument(
        name=name, dtype=shape.dtype, shard=shape.dims, dims=whole, nbytes=shape.nbytes, replicated=axes
    )


def _printed_sharding(
    attributes: str, source: ProgramSource
) -> tuple[tuple[str, ...] | None, tuple[int, ...] | None]:
    """The axes that replicate an argument, and its shards by dimension, from `sharding={...}`."""
    if re.search(r"sharding=\{replicated\}", attributes) and source.mesh:
        return tuple(source.mesh), None
    found = re.search(r"sharding=\{devices=\[([\d,]+)\]([^}]*)\}", attributes)
    if found is None:
        return None, None
    tiles = [int(n) for n in found[1].split(",")]
    # the last dimension of the tiling counts the devices that hold the same shard
    partly = "last_tile_dim_replicate" in found[2]
    axes = [name for name, size in source.mesh.items() if partly and size == tiles[-1]]
    factors = tuple(tiles[:-1] if partly else tiles)
    return (tuple(axes[:1]) if source.mesh else None), factors


def _numbered(body: str) -> list[tuple[int, str]]:
    """The lines '3 "train.py"' of a table."""
    lines = (line.partition(" ") for line in body.splitlines())
    return [(int(number), rest) for number, _, rest in lines if number.isdigit()]


def _number(text: str, key: str) -> int:
    """The number behind `key=`; 0 if there is none."""
    found = re.search(rf"\b{key}=(\d+)", text)
    return int(found[1]) if found else 0

"""Reads XLA's out-of-memory errors on TPUs and GPUs: which memory, how many bytes it needs, and for what.

XLA reports them as RESOURCE_EXHAUSTED with pages of text; `read` turns that into a DoesNotFit with numbers.
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from scalingbook_lib.units import binary

# XLA prints sizes as 15.75G, in powers of two. Only the text of the error says how much was requested and
# how much there is; each of the forms that libtpu has for HBM and VMEM is one of the patterns.
_SUFFIX = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# "Ran out of memory in memory space hbm. Used 20.1G of 15.75G hbm", with a list of the largest buffers
_SPACE = re.compile(
    r"memory in memory space (?P<memory>\w+).*?Used (?P<used>[\d.]+[KMGT]?) of (?P<limit>[\d.]+[KMGT]?)", re.S
)
# the sum of arguments and temporaries is too large, although each of them would fit
_TOTAL = re.compile(
    r"memory on (?P<memory>\w+).*?required for (?P<kind>[\w ]+?) \((?P<used>[\d.]+[KMGT]?)\) exceeds "
    r"available \w+ \((?P<limit>[\d.]+[KMGT]?)\)",
    re.S,
)
# one buffer alone is larger than the memory: XLA gives up before it has allocated anything
_ONE_BUFFER = re.compile(
    r"Allocation \(size=(?P<used>\d+)\) would exceed memory \(size=(?P<limit>\d+)\)"
    r"(?P<rest>.*?space=(?P<memory>\w+).*?tag = '[^']*')",
    re.S,
)
# a hand-written kernel has 16 MiB of VMEM unless it requests more by `vmem_limit_bytes`
_KERNEL = re.compile(
    r"memory in memory space (?P<memory>\w+) .*?(?P<said>Scoped allocation with size (?P<used>[\d.]+[KMGT]?) "
    r"and limit (?P<limit>[\d.]+[KMGT]?) exceeded scoped vmem limit by [\d.]+[KMGT]?)\.",
    re.S,
)
# TPUs name the one buffer that did not fit at run time, and how much is free: "Attempting to allocate 16.00G.
# That was not possible. There are 14.36G free.", "Attempting to reserve 12.50G at the bottom of memory."
_TPU_BUFFER = re.compile(
    r"Attempting to (?:allocate|reserve) (?P<asked>[\d.]+[KMGT]?)\b"
    r"(?:[^;]*?There are (?P<free>[\d.]+[KMGT]?)B? free)?"
)
_FORMS = (_SPACE, _TOTAL, _ONE_BUFFER, _KERNEL)
# A GPU's allocator names the one allocation that failed, and never the GPU's capacity; if a program
# requested it, XLA lists the program's total. "6291456 bytes", "32.00GiB", "2.00GiB (2147483648B)".
_GPU = re.compile(
    r"(?:Out of memory (?:(?:while )?trying to allocate|allocating)|Failed to allocate request for) "
    r"(?P<asked>[\d.]+ ?[KMGT]?i?B?)(?: \((?P<exact>\d+)B\))?"
)
_GPU_PART = re.compile(r"^ *(?P<part>[\w ]+?) allocation: +(?P<size>[\d.]+[KMGT]?i?B)$", re.M)
_GPU_PARTS = {
    "parameter": "arguments",
    "constant": "constants",
    "maybe_live_out": "results",
    "preallocated temp": "HLO temporaries",
}
_GPU_BUFFER = re.compile(r"Size: (?P<size>[\d.]+[KMGT]?i?)B\s*$(?P<rest>.*?)(?=^\s*={5,}|\Z)", re.S | re.M)
_GPU_TOTAL = re.compile(r"Free memory/Total memory: (?P<free>\d+)/(?P<total>\d+)")
_ALLOCATION = re.compile(r"Size: (?P<size>[\d.]+[KMGT]?)B?\s*$(?P<rest>.*?)(?=^\s*={5,}|\Z)", re.S | re.M)


# libtpu's summary: "    arguments         8.00G" and "    HLO temp         12.50G (98.5% utilization..."
_TPU_PARTS = (
    ("HLO temporaries", re.compile(r"^ *HLO temp +([\d.]+[KMGT]?)", re.M)),
    ("arguments", re.compile(r"^ *arguments +([\d.]+[KMGT]?)", re.M)),
)
_SIZE = r"([\d.]+ [KMGT]?i?B)"
_PYTORCH = re.compile(rf"(?:CUDA|HIP|XPU) out of memory\. Tried to allocate {_SIZE}")
_PYTORCH_SIZES = {
    "capacity": re.compile(rf"total capacity of {_SIZE}|{_SIZE} total capacity"),
    "free": re.compile(rf"of which {_SIZE} is free|{_SIZE} free"),
    "allocated": re.compile(rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated"),
    "unused": re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated"),
    "reserved": re.compile(rf"{_SIZE} reserved in total by PyTorch"),
}  # of the messages since 2.1 and before


_NAMED = ("kind", "arguments", "asked_bytes", "free_bytes", "parts")  # keyword-only fields of DoesNotFit


@dataclass(frozen=True, slots=True)
class HbmAllocation:
    """A buffer that needs memory: its size in bytes and its purpose."""

    nbytes: int
    purpose: str

    def __str__(self) -> str:
        return f"{binary(self.nbytes)} for {self.purpose}"


class DoesNotFit(RuntimeError):
    """A program that needs more memory than there is: 'HBM' or 'VMEM' of a TPU, or 'GPU memory'.

    `limit_bytes` is 0 if the message does not state it, as on a GPU. `largest`: the largest buffers, if the
    compiler lists them; `arguments`: the program's arguments, if it does not. `kind`: the purpose of the
    memory in the compiler's words ('HLO temporaries'). `scoped_vmem`: the compiler's own sentence, if one
    kernel requested more VMEM than a kernel may have. On a GPU, and on a TPU at run time, `asked_bytes` is
    the allocation that failed, where `free_bytes` were free, and `parts` is what the whole program needs, if
    XLA lists it.
    """

    def __init__(
        self,
        memory: str,
        used_bytes: int,
        limit_bytes: int,
        largest: tuple[HbmAllocation, ...] = (),
        scoped_vmem: str = "",
        *,
        kind: str = "",
        arguments: tuple[HbmAllocation, ...] = (),
        asked_bytes: int = 0,
        free_bytes: int | None = None,
        parts: tuple[HbmAllocation, ...] = (),
    ):
        super().__init__(memory, used_bytes, limit_bytes, largest, scoped_vmem)
        self.memory, self.used_bytes, self.limit_bytes = memory, used_bytes, limit_bytes
        self.largest, self.scoped_vmem, self.kind, self.arguments = largest, scoped_vmem, kind, arguments
        self.asked_bytes, self.free_bytes, self.parts = asked_bytes, free_bytes, parts

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles every field: the default would lose the keyword-only ones."""
        named = {name: getattr(self, name) for name in _NAMED}
        return partial(DoesNotFit, **named), self.args

    def with_arguments(self, arguments: tuple[HbmAllocation, ...]) -> "DoesNotFit":
        """The same error, with the program's arguments if the compiler lists no buffers itself."""
        shown = arguments if self.memory == "HBM" and not self.largest else ()
        return DoesNotFit(
            self.memory,
            self.used_bytes,
            self.limit_bytes,
            self.largest,
            self.scoped_vmem,
            kind=self.kind,
            arguments=shown,
            asked_bytes=self.asked_bytes,
            free_bytes=self.free_bytes,
            parts=self.parts,
        )

    def __str__(self) -> str:
        if self.scoped_vmem:
            return (
                f"one kernel needs {binary(self.used_bytes)} of {self.memory} at once but may use only "
                f"{binary(self.limit_bytes)}; use smaller tiles, or raise vmem_limit_bytes"
            )
        if self.asked_bytes:
            return self._of_allocation()
        most = max(self.parts, key=lambda part: part.nbytes, default=None)
        remedies = {
            "HBM": _RECOMPUTE
            if self._temporaries_bytes or (most and most.purpose == "HLO temporaries")
            else "make the arrays smaller, or shard them over more chips"
        }
        remedy = remedies.get(self.memory, "use smaller tiles")
        # the compiler also says "for HLO temporaries" of arguments: if they are known, `_listing` counts them
        kind_note = f" for {self.kind}" if self.kind and not self.arguments else ""
        return (
            f"the program needs {binary(self.used_bytes)} of {self.memory}{kind_note} and a chip has "
            f"{binary(self.limit_bytes)}{self._listing()}; {remedy}"
        )

    @property
    def _temporaries_bytes(self) -> int:
        """The bytes of HLO temporaries and results if they are most of the memory; otherwise 0."""
        given = sum(each.nbytes for each in self.arguments)
        rest = self.used_bytes - given
        return rest if "temporaries" in self.kind and self.arguments and rest > given else 0

    def _listing(self) -> str:
        """The largest buffers, or the arguments and what is left for HLO temporaries and results."""
        parts = f" ({_listed(self.parts, len(self.parts))})" if self.parts else ""
        if self.largest:
            return f"{parts}; the largest: {'; '.join(map(str, self.largest[:3]))}"
        if parts and not self.arguments:
            return parts
        if not self.arguments:
            return ""
        total = binary(sum(each.nbytes for each in self.arguments))
        arguments = f"its arguments take {total} ({_listed(self.arguments)})"
        if self._temporaries_bytes:
            temporaries = binary(self._temporaries_bytes)
            return (
                f"; HLO temporaries, which live between operations, and results take {temporaries}, while "
                f"{arguments}"
            )
        return f"; {arguments}, results and temporaries the rest"

    def _of_allocation(self) -> str:
        """The sentence about one allocation; its message seldom states the capacity or what else is there."""
        has = f", and the GPU has {binary(self.limit_bytes)}" if self.limit_bytes else ""
        if not self.parts:
            device = "TPU" if self.memory == "HBM" else "GPU"
            free = "" if self.free_bytes is None else f", where {binary(self.free_bytes)} were free"
            pieces = " in pieces" * (self.asked_bytes <= (self.free_bytes or 0))
            return (
                f"an allocation of {binary(self.asked_bytes)} of {self.memory} does not fit next to the data "
                f"already on the {device}{free}{pieces}{has}; make the arrays smaller, shard them over more "
                f"{device}s, or donate arguments that are not needed afterwards"
            )
        largest = f"; the largest: {'; '.join(map(str, self.largest[:3]))}" if self.largest else ""
        most = max(self.parts, key=lambda part: part.nbytes)
        remedy = (
            _RECOMPUTE
            if most.purpose == "HLO temporaries"
            else "make the arrays smaller, or shard them over more GPUs"
        )
        return (
            f"the program needs {binary(self.used_bytes)} of GPU memory "
            f"({_listed(self.parts, len(self.parts))}), and "
            f"an allocation of {binary(self.asked_bytes)} failed{has}{largest}; {remedy}"
        )


_RECOMPUTE = (
    "recompute intermediate values (jax.checkpoint), work on smaller chunks at a time, or shard the arrays "
    "over more chips"
)


def read(message: str) -> DoesNotFit | None:
    """The error that a compiler's message describes; None if the message is about something else."""
    if not re.search("RESOURCE_EXHAUSTED|Resource exhausted", message):
        return None
    found = next(filter(None, (form.search(message) for form in _FORMS)), None)
    if found is None:
        return _read_gpu(message) or _read_tpu(message)
    if found.re is _KERNEL:
        return DoesNotFit(
            found["memory"].upper(), _bytes(found["used"]), _bytes(found["limit"]), scoped_vmem=found["said"]
        )
    buffers = _ALLOCATION.findall(message)
    if found.re is _ONE_BUFFER:
        buffers = [(found["used"], found["rest"])]
    largest = tuple(_allocation(size, rest) for size, rest in buffers)
    kind = found.groupdict().get("kind") or ""
    return DoesNotFit(
        found["memory"].upper(),
        _bytes(found["used"]),
        _bytes(found["limit"]),
        largest,
        kind=kind,
        parts=_tpu_parts(message) if found.re is _SPACE else (),
    )


def _tpu_parts(message: str) -> tuple[HbmAllocation, ...]:
    """The arguments and the HLO temporaries of a program, if libtpu lists them; the larger one first."""
    found = (
        HbmAllocation(_bytes(size[1]), words) for words, form in _TPU_PARTS if (size := form.search(message))
    )
    return tuple(sorted(found, key=lambda part: -part.nbytes))


def of_pytorch(message: str) -> str:
    """What an out-of-memory error of PyTorch says, with a remedy; "" for another text."""
    if (asked := _PYTORCH.search(message)) is None:
        return ""
    sizes = {
        name: _bytes(found[1] or found[found.lastindex or 1])
        for name, form in _PYTORCH_SIZES.items()
        if (found := form.search(message))
    }
    told = f"an allocation of {binary(_bytes(asked[1]))} failed"
    if "capacity" in sizes:
        free = f", of which {binary(sizes['free'])} was free" if "free" in sizes else ""
        told += f" on a GPU of {binary(sizes['capacity'])}{free}"
    if "allocated" in sizes:
        told += f"; PyTorch had allocated {binary(sizes['allocated'])}"
    unused = sizes.get("unused", sizes.get("reserved", 0) - sizes.get("allocated", 0))
    if unused >= _bytes(asked[1]):
        told += f", and {binary(unused)} of its reserved memory was unused, but in pieces"
        return f"{told}; set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    return (
        f"{told}; use a smaller microbatch, recompute activations, or shard the training state over more "
        "GPUs (`scalingbook launch` on the command says what takes the memory)"
    )


def _read_gpu(message: str) -> DoesNotFit | None:
    """The error that a GPU's allocator reports, with the program's memory if XLA lists it."""
    if (asked := _GPU.search(message)) is None:
        return None
    sizes = {found["part"]: _bytes(found["size"]) for found in _GPU_PART.finditer(message)}
    parts = (HbmAllocation(sizes[name], words) for name, words in _GPU_PARTS.items() if sizes.get(name))
    known = _GPU_TOTAL.search(message)
    asked_bytes = int(asked["exact"]) if asked["exact"] else _bytes(asked["asked"])
    return DoesNotFit(
        "GPU memory",
        sizes.get("total", asked_bytes),
        int(known["total"]) if known else 0,
        tuple(_allocation(size, rest) for size, rest in _GPU_BUFFER.findall(message)),
        asked_bytes=asked_bytes,
        parts=tuple(sorted(parts, key=lambda part: -part.nbytes)),
    )


def _read_tpu(message: str) -> DoesNotFit | None:
    """The error that a TPU's allocator reports at run time."""
    if (found := _TPU_BUFFER.search(message)) is None:
        return None
    asked_bytes, free = _bytes(found["asked"]), found["free"]
    free_bytes = None if free is None else _bytes(free)
    return DoesNotFit("HBM", asked_bytes, 0, asked_bytes=asked_bytes, free_bytes=free_bytes)


def _listed(arguments: tuple[HbmAllocation, ...], limit: int = 3) -> str:
    """The first `limit` of the arguments, and the number of the others."""
    listed = "; ".join(f"{binary(each.nbytes)} for {each.purpose}" for each in arguments[:limit])
    others = len(arguments) - limit
    return f"{listed}; {others} smaller" if others > 0 else listed


def _allocation(size: str, rest: str) -> HbmAllocation:
    """A buffer by its shape (its window's, if it has one) and the first sentence about its purpose."""
    shape = re.search(r"window shape is (\S+\])", rest) or re.search(
        r"(?:[Ss]hape|Subshape)(?::| =) '?(\S+?\])", rest
    )
    purpose = re.search(r"[Tt]ag(?::| =) '?([^\n']*?)(?:\.\s|'|$)", rest, re.M)
    purpose = purpose or re.search(r"XLA [Ll]abel: (.*)$", rest, re.M)
    if purpose is None and "Entry Parameter" in rest:
        return HbmAllocation(_bytes(size), f"argument {shape[1]}" if shape else "an argument")
    purpose = purpose[1].strip() if purpose else "a buffer"
    return HbmAllocation(_bytes(size), f"{shape[1]}, {purpose}" if shape else purpose)


def _bytes(text: str) -> int:
    """The bytes of a size as XLA prints it, in powers of two: '15.75G' of a TPU, '12.83GiB' of a GPU."""
    suffix = text.lstrip("0123456789. ").removesuffix("B").removesuffix("i")
    return round(float(text.rstrip(" KMGTiB")) * _SUFFIX[suffix])

"""The forward and backward pass of one sharded MLP, operation by operation.

In[B, D] · W_in[D, F] = Tmp and Tmp · W_out[F, D] = Out; in the backward pass, each matmul has two gradients.
Mesh axis X is for data parallelism or FSDP, and Y for tensor parallelism. Each line computes an array, runs a
collective, or says which array arrives from another layer; arrays that are no longer needed are freed.
"""

from dataclasses import dataclass, field

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.units import BF16

ARRAYS = ("In", "W_in", "Tmp", "W_out", "Out", "dIn", "dW_in", "dTmp", "dW_out", "dOut")


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """One line of the program, and the arrays in sharding notation that a chip holds after it."""

    when: str  # "forward" or "backward"
    what: str  # the collective, "product" or "arrives"
    array: str
    text: str
    held: dict[str, str] = field(repr=False)
    axis: str = ""
    waited: bool = False  # whether the next matmul has to wait for the collective
    whole: str = ""  # the array that a collective moves, gathered over its mesh axis


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """One line of FSDP with TP; other schemes drop the mesh axes that they lack."""

    what: str  # "gather X", "sum Y" (partial sums, to shards where `dims` has the axis), "product", "arrives"
    array: str
    dims: str  # of the array afterwards
    says: str = ""
    back: tuple[str, ...] = ()  # gathered arrays that are no longer needed: only their shards stay
    gone: tuple[str, ...] = ()


HOME = {"In": "[B_X, D_Y]", "W_in": "[D_X, F_Y]", "W_out": "[F_Y, D_X]"}
# the six matmuls and their collectives, as the chapter derives them
FORWARD = (
    _Line(what="gather Y", array="In", dims="[B_X, D]"),
    _Line(what="gather X", array="W_in", dims="[D, F_Y]"),
    _Line(what="product", array="Tmp", dims="[B_X, F_Y]", says="In · W_in", back=("W_in", "In")),
    _Line(what="gather X", array="W_out", dims="[F_Y, D]"),
    _Line(what="product", array="Out", dims="[B_X, D]{U_Y}", says="Tmp · W_out", back=("W_out",)),
    _Line(what="sum Y", array="Out", dims="[B_X, D_Y]"),
)
# W_out before W_in, and the weight's gradient before the input's, so that its reduction can overlap
BACKWARD = (
    _Line(
        what="arrives",
        array="dOut",
        dims="[B_X, D_Y]",
        says="arrives from the layer after; Out is the next layer's",
        gone=("Out",),
    ),
    _Line(what="gather Y", array="dOut", dims="[B_X, D]"),  # for both gradients of the matmul with W_out
    _Line(what="product", array="dW_out", dims="[F_Y, D]{U_X}", says="Tmpᵀ · dOut"),
    _Line(what="sum X", array="dW_out", dims="[F_Y, D_X]"),
    _Line(what="gather X", array="W_out", dims="[F_Y, D]"),
    _Line(
        what="product",
        array="dTmp",
        dims="[B_X, F_Y]",
        says="dOut · W_outᵀ",
        back=("W_out",),
        gone=("dOut", "Tmp"),
    ),
    _Line(what="gather Y", array="In", dims="[B_X, D]"),
    _Line(what="product", array="dW_in", dims="[D, F_Y]{U_X}", says="Inᵀ · dTmp", back=("In",)),
    _Line(what="sum X", array="dW_in", dims="[D_X, F_Y]"),
    _Line(what="gather X", array="W_in", dims="[D, F_Y]"),
    _Line(
        what="product",
        array="dIn",
        dims="[B_X, D]{U_Y}",
        says="dTmp · W_inᵀ",
        back=("W_in",),
        gone=("dTmp", "In"),
    ),
    _Line(what="sum Y", array="dIn", dims="[B_X, D_Y]"),
)
_WITHOUT = {  # what a scheme drops from the lines; DP replicates weights, but reduces gradients
    "DP": {"D_X": "D", "{U_Y}": "", "_Y": ""},
    "FSDP": {"{U_Y}": "", "_Y": ""},
    "TP": {"{U_X}": "", "_X": ""},
    "FSDP with TP": {},
}
SCHEMES = tuple(_WITHOUT)


def program(scheme: str) -> tuple[ProgramLine, ...]:
    """Return the lines of a scheme; the first one is the state before any operation."""
    home = {array: _without(scheme, dims) for array, dims in HOME.items()}
    held = dict(home)
    moves = [ProgramLine("forward", "", "", "", home)]
    for when, lines in (("forward", FORWARD), ("backward", BACKWARD)):
        for line in lines:
            before, after = held.get(line.array, ""), _without(scheme, line.dims)
            if (
                before != after
            ):  # otherwise the scheme lacks the axis, and there is nothing to gather or to reduce
                # gathered arrays are reduced to their shards again
                held = held | {line.array: after} | {array: home[array] for array in line.back}
                held = {array: dims for array, dims in held.items() if array not in line.gone}
                moves.append(_move(when, line, before, after, held))
    return tuple(moves)


def _without(scheme: str, dims: str) -> str:
    for axis, instead in _WITHOUT[scheme].items():
        dims = dims.replace(axis, instead)
    return dims


def _move(when: str, line: _Line, before: str, after: str, held: dict[str, str]) -> ProgramLine:
    """Return one line; only the collectives of tensor parallelism are on the critical path."""
    array, (what, _, axis) = line.array, line.what.partition(" ")
    if not axis:
        says = f"= {line.says}" if what == "product" else line.says
        return ProgramLine(when, what, array, f"{array}{after} {says}", held)
    kind, whole = Collective.ALL_GATHER, after
    # partial sums, which are as large as the whole array
    if what == "sum":
        whole = before
        kind = Collective.REDUCE_SCATTER if f"_{axis}" in after else Collective.ALL_REDUCE
    text = f"{array}{before} → {array}{after}"
    return ProgramLine(when, kind, array, text, held, axis, waited=axis == "Y", whole=array + whole)


@dataclass(frozen=True)
class ProgramSizes:
    """The sizes of the arrays, all in bf16, and the mesh that shards them."""

    B: int
    D: int
    F: int
    mesh: Mesh

    def nbytes(self, text: str) -> float:
        """Return the bytes of one chip's shard of an array."""
        return parse(text, self.mesh).local_bytes(self.mesh, BF16, B=self.B, D=self.D, F=self.F)

    def held(self, move: ProgramLine) -> float:
        """Return the bytes of all arrays on a chip after a line."""
        return sum(self.nbytes(name + dims) for name, dims in move.held.items())

    def received(self, move: ProgramLine) -> float:
        """Return the bytes that each chip receives in a line."""
        if not isinstance(move.what, Collective):
            return 0.0
        # n - 1 of the n shards of the gathered array
        return collectives.bytes_received(move.what, self.nbytes(move.whole), self.mesh.size(move.axis))

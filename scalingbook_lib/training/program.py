"""What does one MLP do in a step, and with what? The forward and backward pass as a list of moves.

In[B, D] · W_in[D, F] = Tmp, Tmp · W_out[F, D] = Out; backward every product's two gradients. Data ways X,
tensor ways Y. A move makes an array, moves one, or says what arrives; what is not needed again goes.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.units import BF16

SCHEMES = ("DP", "FSDP", "TP", "FSDP with TP")
ARRAYS = ("In", "W_in", "Tmp", "W_out", "Out", "dIn", "dW_in", "dTmp", "dW_out", "dOut")


@dataclass(frozen=True, slots=True)
class Move:
    """One line of the program and the arrays, by name as the notation writes them, that a chip then holds."""

    when: str  # "forward" or "backward"
    what: str  # the collective, "product" or "arrives"
    array: str
    text: str
    held: dict[str, str] = field(repr=False)
    axis: str = ""
    waited: bool = False  # whether the next product has to wait for a collective
    whole: str = ""  # the array that a collective moves, as one group of chips has it


class _Writer:
    """Writes the moves one after the other, and keeps what is held."""

    def __init__(self, scheme: str) -> None:
        self.tensor = scheme in ("TP", "FSDP with TP")
        self.shards = scheme in ("FSDP", "FSDP with TP")
        x, y = "" if scheme == "TP" else "_X", "_Y" if self.tensor else ""
        self.x, self.y, self.w = x, y, "_X" if self.shards else ""
        self.home = {"In": f"[B{x}, D{y}]", "W_in": f"[D{self.w}, F{y}]", "W_out": f"[F{y}, D{self.w}]"}
        self.held = dict(self.home)
        self.when, self.moves = "forward", [Move("forward", "", "", "", dict(self.held))]

    def add(
        self, what: str, name: str, text: str, *, axis: str = "", waited: bool = False, whole: str = ""
    ) -> None:
        self.moves.append(Move(self.when, what, name, text, dict(self.held), axis, waited, whole))

    def gather(self, name: str, axis: str, *, waited: bool = False) -> None:
        before = self.held[name]
        after = before.replace(f"_{axis}", "") if name.startswith("W") else before.replace("D_Y", "D")
        self.held[name] = after
        text = f"{name}{before} → {name}{after}"
        self.add(Collective.ALL_GATHER, name, text, axis=axis, waited=waited, whole=name + after)

    def product(self, name: str, dims: str, says: str, *drop: str) -> None:
        self.held[name] = dims
        for gone in drop:
            self.held[gone] = self.home.get(gone, "")
            if not self.held[gone]:
                del self.held[gone]
        self.add("product", name, f"{name}{dims} = {says}")

    def settle(self, name: str, dims: str, axis: str, *, waited: bool = False, reduce: bool = False) -> None:
        """Add the partial sums: scattered to `dims`, or whole on every chip."""
        before = self.held[name]
        self.held[name] = dims
        what = Collective.ALL_REDUCE if reduce else Collective.REDUCE_SCATTER
        self.add(what, name, f"{name}{before} → {name}{dims}", axis=axis, waited=waited, whole=name + before)


def _forward(w: _Writer) -> None:
    if w.tensor:
        w.gather("In", "Y", waited=True)
    if w.shards:
        w.gather("W_in", "X")
    w.product("Tmp", f"[B{w.x}, F{w.y}]", "In · W_in", "W_in", "In")
    if w.shards:
        w.gather("W_out", "X")
    pending = "{U_Y}" if w.tensor else ""
    w.product("Out", f"[B{w.x}, D]{pending}", "Tmp · W_out", "W_out")
    if w.tensor:
        w.settle("Out", f"[B{w.x}, D_Y]", "Y", waited=True)


def _backward(w: _Writer) -> None:
    w.when = "backward"
    w.held.pop("Out")
    w.held["dOut"] = f"[B{w.x}, D{w.y}]"
    w.add("arrives", "dOut", f"dOut{w.held['dOut']} arrives from the layer after; Out is the next layer's")
    if w.tensor:
        w.gather("dOut", "Y", waited=True)
    pending = "{U_X}" if w.x else ""
    w.product("dW_out", f"[F{w.y}, D]{pending}", "Tmpᵀ · dOut")
    _sum(w, "dW_out", f"[F{w.y}, D{w.w}]")
    if w.shards:
        w.gather("W_out", "X")
    w.product("dTmp", f"[B{w.x}, F{w.y}]", "dOut · W_outᵀ", "W_out", "dOut", "Tmp")
    if w.tensor:
        w.gather("In", "Y", waited=True)
    w.product("dW_in", f"[D, F{w.y}]{pending}", "Inᵀ · dTmp", "In")
    _sum(w, "dW_in", f"[D{w.w}, F{w.y}]")
    if w.shards:
        w.gather("W_in", "X")
    w.home.pop("In")
    w.product("dIn", f"[B{w.x}, D]{'{U_Y}' if w.tensor else ''}", "dTmp · W_inᵀ", "W_in", "dTmp", "In")
    if w.tensor:
        w.settle("dIn", f"[B{w.x}, D_Y]", "Y", waited=True)


def _sum(w: _Writer, name: str, dims: str) -> None:
    if w.x:
        w.settle(name, dims, "X", reduce=not w.shards)


@lru_cache(maxsize=8)
def program(scheme: str) -> tuple[Move, ...]:
    """The moves of a scheme; the first is the state before any of them."""
    writer = _Writer(scheme)
    _forward(writer)
    _backward(writer)
    return tuple(writer.moves)


@dataclass(frozen=True)
class Sizes:
    """How large the arrays are, and the mesh that they are spread over; bf16 throughout."""

    B: int
    D: int
    F: int
    mesh: Mesh

    def nbytes(self, text: str) -> float:
        """What one chip holds of an array."""
        return parse(text, self.mesh).local_bytes(self.mesh, BF16, B=self.B, D=self.D, F=self.F)

    def held(self, move: Move) -> float:
        """Bytes of a chip after a move."""
        return sum(self.nbytes(name + dims) for name, dims in move.held.items())

    def received(self, move: Move) -> float:
        """Bytes that a move brings to each chip."""
        if not isinstance(move.what, Collective):
            return 0.0
        return collectives.bytes_received(move.what, self.nbytes(move.whole), self.mesh.size(move.axis))

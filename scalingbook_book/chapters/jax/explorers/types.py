"""Explorer of operations on sharded arrays: the type of the result or JAX's error, and the cost."""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib.notation import Array
from scalingbook_lib.notation.types import rules, spec
from scalingbook_lib.notation.types.operands import MESH, Operands, TypedResult
from scalingbook_lib.notation.types.rules import BINARY, PRODUCT, RESHARD
from scalingbook_lib.sharded_matmul import prices
from scalingbook_lib.sharded_matmul.prices import ProductPath
from scalingbook_lib.units import BF16, si

SPECS = (
    "P(None, None)",
    "P('X', None)",
    "P('Y', None)",
    "P(None, 'X')",
    "P(None, 'Y')",
    "P('X', 'Y')",
    "P('Y', 'X')",
    "P(('X', 'Y'), None)",
    "P(('Y', 'X'), None)",
    "P(None, ('X', 'Y'))",
    "P('X', None, unreduced={'Y'})",
    "P(None, 'Y', unreduced={'X'})",
    "P(None, None, unreduced={'Y'})",
)
NOT_GIVEN = "not given"
_MOST = 4  # ways that are shown
_END = "\N{RIGHT DOUBLE QUOTATION MARK} \N{RIGHTWARDS ARROW}"


def operands(operation: str, *, a: str, b: str, out: str, I: int, J: int, K: int) -> Operands:
    """The arrays that these texts name; `b` and `out` stand for nothing where the operation takes none."""
    sizes = {"I": I, "J": J, "K": K, "N": I * J}
    rows = "JK" if operation == PRODUCT else "IJ"
    takes = operation in rules.TAKES_OUT and out != NOT_GIVEN
    wanted = spec.read(out, 2, MESH, "C", "IK" if operation == PRODUCT else "IJ") if takes else None
    return Operands(spec.read(a, 2, MESH), spec.read(b, 2, MESH, "B", rows), wanted, sizes)


def _types(*, operation: str, a: str, b: str, out: str, I: int, J: int, K: int) -> View:
    o = operands(operation, a=a, b=b, out=out, I=I, J=J, K=K)
    answer = rules.answer(operation, o)
    own = prices.ways(operation, o, answer.array)[:_MOST] if answer.array else ()
    bars = _bars(operation, o, answer, own)
    return View(
        _verdict(operation, o, answer, own),
        (_table(operation, o, answer), *bars),
        (
            Readout("result", 0, "", o.typed(answer.array) if answer.array else "refused"),
            *_costs(o, answer, own),
        ),
        columns=2,
    )


def _costs(o: Operands, answer: TypedResult, own: tuple[ProductPath, ...]) -> tuple[Readout, ...]:
    if answer.array is None:
        return ()
    local = answer.array.local_bytes(MESH, BF16, **o.sizes)
    return (
        Readout("result, per device", local, "B"),
        Readout("bytes in collectives", own[0].nbytes, "B"),
        Readout("time in collectives", own[0].total_s, "s"),
    )


# What is shown


def code(operation: str, o: Operands) -> str:
    """The line of JAX."""
    if operation == RESHARD:
        return f"jax.reshard(A, {spec.spec(o.out or o.a)})"
    if operation == PRODUCT and o.out is not None:
        return f"jnp.dot(A, B, out_sharding={spec.spec(o.out)})"
    return operation


def _table(operation: str, o: Operands, answer: TypedResult) -> Grid:
    given = [o.a, o.b] if operation in BINARY else [o.a]
    rows = {array.canonical(): _row(o, array) for array in given}
    if answer.array:
        rows[f"C{answer.array.canonical()[1:]}"] = _row(o, answer.array, 2)
    else:
        rows["result"] = [Cell(text, 1, level=0.6) for text in ("refused", "\N{EN DASH}")]
    title = "Types, on an Explicit mesh of 2 (X) by 4 (Y)"
    return Grid(title, list(rows), ("jax.typeof", "local shape"), list(rows.values()))


def _row(o: Operands, array: Array, color: int | None = None) -> list[Cell]:
    local = ",".join(map(str, array.local_shape(MESH, **o.sizes)))
    return [Cell(text, color, level=0.6) for text in (o.short(array), f"[{local}]")]


def _bars(operation: str, o: Operands, answer: TypedResult, own: tuple[ProductPath, ...]) -> tuple[Bars, ...]:
    """Every answer to an ambiguous product with its price; of other results, the ways to them."""
    sums = prices.partial(o) if operation == PRODUCT else None
    if sums:
        found = prices.out_shardings(o, SPECS)
        labels = [f"{way.name}: {way.kinds}" for way in found]
        title = f"From {sums.canonical()} to each out_sharding"
        return (_priced(title, labels, found, spec.spec(o.out) if o.out else ""),)
    if answer.array and own[0].total_s:
        return (_priced("Plans for this result, the cheapest first", [way.name for way in own], own, ""),)
    return ()


def _priced(title: str, labels: list[str], found: tuple[ProductPath, ...], yours: str) -> Bars:
    mine = [way.total_s if way.name == yours else 0.0 for way in found]
    rest = [way.total_s if way.name != yours else 0.0 for way in found]
    others = Series("others", rest, 0)
    series = (Series("yours", mine, 3), others) if yours else (others,)
    return Bars(Scale("time on TPU v5e", "s"), labels, series, True, title=title)


def _verdict(operation: str, o: Operands, answer: TypedResult, own: tuple[ProductPath, ...]) -> str:
    line = code(operation, o)
    if answer.array is None:
        return f"{line}: JAX refuses, \N{LEFT DOUBLE QUOTATION MARK}{answer.words}{_END} {answer.instead}."
    best = own[0]
    if best.total_s:
        price = f"{best.description}, {si(best.nbytes, 'B')} in {si(best.total_s, 's')} on TPU v5e"
        quiet = "" if operation in rules.TAKES_OUT and o.out else ", although the line does not request it"
        return f"{line} has type {o.typed(answer.array)}. This takes communication: {price}{quiet}."
    return f"{line} has type {o.typed(answer.array)} and needs no communication."


TYPES = Explorer(
    key="jax.types",
    title="Explicit mode: result types and errors",
    question="What sharding does the result have, what does it cost, and when does JAX refuse?",
    controls={
        "operation": Choice("operation", tuple(rules.RULES), PRODUCT),
        "a": Choice("sharding of A", SPECS, "P('X', 'Y')"),
        "b": Choice("sharding of B", SPECS, "P('Y', None)"),
        "out": Choice("out_sharding (@, reshard)", (NOT_GIVEN, *SPECS), NOT_GIVEN),
        "I": Slider("size of I", 64, 65536, 8192, "pow2"),
        "J": Slider("size of J", 64, 65536, 8192, "pow2"),
        "K": Slider("size of K", 64, 65536, 8192, "pow2"),
    },
    view=_types,
)

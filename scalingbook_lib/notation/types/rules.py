"""The result type of an operation under JAX's explicit mode, or the error with which JAX refuses it.

The operands are arrays A[I, J]. A dimension keeps the mesh axes of the operand dimension that it comes from.
JAX refuses an operation if two operands disagree, if one axis would shard two dimensions, or if JAX would
have to guess. The messages are those of JAX 0.12; a test in the lab runs every case there.
"""

from collections.abc import Callable

from scalingbook_lib.notation import Array, Dim
from scalingbook_lib.notation.types import spec
from scalingbook_lib.notation.types.operands import (
    MESH,
    TYPE,
    Operands,
    Refusal,
    TypedResult,
    each,
    one,
    unordered,
)

PRODUCT, RESHARD = "A @ B", "jax.reshard(A, out)"
BINARY = (PRODUCT, "A + B", "A * B")
TAKES_OUT = (PRODUCT, RESHARD)
QUOTE = "'"

type Rule = Callable[[Operands], Array]


def answer(operation: str, o: Operands) -> TypedResult:
    """The type of the operation's result by JAX's rules, or JAX's error."""
    try:
        return TypedResult(RULES[operation](o))
    except Refusal as refusal:
        return TypedResult(None, *refusal.args)


def _refuse_where(wrong: object, words: str, instead: str) -> None:
    """Raise `Refusal` with JAX's message and the alternative if `wrong` is true."""
    if wrong:
        raise Refusal(words, instead)


# Matmuls


def contracted(o: Operands) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The mesh axes that shard the contracting dimension of A · B, in each operand."""
    return o.a.axes_of("J"), o.b.axes_of("J")


def _product(o: Operands) -> Array:
    """The requested sharding, or I with the axes of A and K with those of B."""
    # JAX checks the dimensions before the partial sums, which fixes the order of its errors
    made = _natural(o) if o.out is None else o.out
    _refuse_where(
        o.a.partial or o.b.partial,
        "lhs or rhs passed to dot_general cannot be unreduced. "
        f"Got lhs=ShapedArray({o.typed(o.a)}) and rhs=ShapedArray({o.typed(o.b)})",
        "reduce the operand first, with jax.reshard: a product of sums is not a sum of products",
    )
    return made if o.out is None else _given(o.out, *contracted(o))


def _natural(o: Operands) -> Array:
    """The result without `out_sharding`: if J is sharded in one operand only, that operand is gathered.

    JAX refuses J sharded in both operands as ambiguous.
    """
    left, right = contracted(o)
    _refuse_where(
        left and right,
        "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. "
        "Please specify the output sharding via the `out_sharding` parameter. "
        f"Got lhs_contracting_spec={one(left)} and rhs_contracting_spec={one(right)}",
        "state which result you want: jnp.dot(A, B, out_sharding=...)",
    )
    made = Array("C", (Dim("I", o.a.axes_of("I")), Dim("K")))
    return _legal("dot_general", o, made, {"K": o.b.axes_of("K")})


def _given(out: Array, left: tuple[str, ...], right: tuple[str, ...]) -> Array:
    """The result with `out_sharding`: any sharding, unreduced over exactly the axes that shard J in both."""
    _refuse_where(
        out.partial and left != right,
        "lhs and rhs contracting dims should be sharded identically when out_sharding provided to "
        "dot_general mentions unreduced_axes. "
        f"Got lhs_contracting_spec={one(left)}, rhs_contracting_spec={one(right)}",
        "shard J the same way in both operands, or request a reduced result",
    )
    _refuse_where(
        out.partial and out.partial != left,
        "out_sharding's unreduced axes should be equal to the contracting specs. "
        f"Got unreduced axes={unordered(out.partial)} and contracting spec={one(left)}",
        "list exactly the axes that shard J in unreduced",
    )
    return out


def _legal(name: str, o: Operands, made: Array, more: dict[str, tuple[str, ...]]) -> Array:
    """The result with these axes added; JAX refuses if one of them already shards it."""
    axes = {dim.name: more.get(dim.name, dim.axes) for dim in made.dims}
    used = [axis for split in axes.values() for axis in split]
    if len(set(used)) == len(used):
        return made.with_axes(**axes)
    dims = zip(made.shape(**o.sizes), axes.values(), strict=True)
    shown = ",".join(f"{n}{spec.at(split)}" for n, split in dims)
    raise Refusal(
        f"{name} operation with inputs: {o.short(o.a)}, {o.short(o.b)} produces an illegally sharded result: "
        f"{spec.SHORT[TYPE]}[{shown}]",
        "one axis cannot shard two dimensions: jax.reshard an operand first"
        + (", or give out_sharding" if name == "dot_general" else ""),
    )


# Elementwise operations


def _sum(o: Operands) -> Array:
    """A + B: operands that are unreduced over the same axes may be added."""
    a, b, made = o.a.partial, o.b.partial, _elementwise("add", o)
    _refuse_where(
        a and b and a != b,
        f"lhs and rhs to `add` must be unreduced along the same mesh axes. "
        f"Got lhs={unordered(a)}, rhs={unordered(b)}",
        "jax.reshard one of them first",
    )
    if a != b:
        which, other = ("lhs", "rhs") if a else ("rhs", "lhs")
        raise Refusal(
            f"{which} is unreduced while {other} is not. `add` operation does not allow this because there "
            f"will be implicit communication. Please reduce {which} via `reshard` before calling `add`.",
            "every device would add the whole array to its partial sum: jax.reshard first",
        )
    return made.with_partial(a)


def _times(o: Operands) -> Array:
    """A · B elementwise: an unreduced operand needs one that is reduced over the same axes."""
    a, b, made = o.a.partial, o.b.partial, _elementwise("mul", o)
    _refuse_where(
        a and b,
        "lhs and rhs to `mul` cannot be unreduced since mul is bilinear. "
        f"Got lhs={unordered(a)}, rhs={unordered(b)}",
        "a product of sums is not a sum of products: jax.reshard first",
    )
    if a or b:
        first, second = ("RHS", "LHS") if a else ("LHS", "RHS")
        raise Refusal(
            f"{first} should be reduced along the same axes {second} is unreduced on. "
            f"Got lhs={o.typed(o.a)} and rhs={o.typed(o.b)}",
            "jax.reshard the unreduced one first, or the other one to reduced={...}",
        )
    return made


def _elementwise(name: str, o: Operands) -> Array:
    """Each dimension takes the axes of the operand that shards it; if both shard it, they must agree."""
    pairs = [(x.axes, y.axes) for x, y in zip(o.a.dims, o.b.dims, strict=True)]
    _refuse_where(
        any(x and y and x != y for x, y in pairs),
        f"{name} got incompatible shardings for broadcasting: {each(o.a)}, {each(o.b)}.",
        "jax.reshard one operand to the sharding of the other",
    )
    names = o.a.names
    more = {d: x or y for d, (x, y) in zip(names, pairs, strict=True)}
    return _legal(name, o, Array("C", tuple(Dim(d) for d in names)), more)


# Unary operations


def _nonlinear(o: Operands) -> Array:
    _refuse_where(
        o.a.partial,
        f"tanh is a non-linear operation and cannot accept input that is unreduced. Got {o.typed(o.a)}",
        "the tanh of a sum is not a sum of tanhs: jax.reshard first",
    )
    return o.a


def _summed(d: int) -> Rule:
    """The sum over a dimension: its axes leave the type, and JAX inserts the all-reduce."""
    return lambda o: Array("C", (o.a.dims[1 - d],), o.a.partial)


def _row(o: Operands) -> Array:
    axes = o.a.dims[0].axes
    _refuse_where(
        axes,
        f"slicing on sharded dims where out dim (1) is not divisible by mesh axes ({MESH.size(axes)}) "
        f"with spec ({spec.entry(axes).strip(QUOTE)}) is not implemented. Got input type={o.short(o.a)} "
        f"and output shape=(1, {o.sizes['J']})",
        "give the row's sharding, A.at[0].get(out_sharding=...), or gather the rows first by jax.reshard",
    )
    return _summed(0)(o)


def _flat(o: Operands) -> Array:
    """A reshaped to one dimension, with the axes of I, then those of J.

    JAX refuses sharded columns of unsharded rows.
    """
    # if rows are sharded, JAX accepts sharded columns and lists their axes after those of the rows
    rows, columns = (dim.axes for dim in o.a.dims)
    _refuse_where(
        columns and not rows,
        "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` "
        f"argument of jax.lax.reshape. Got operand type: {o.typed(o.a)}, "
        f"new sizes: ({o.sizes['I'] * o.sizes['J']},)",
        "give out_sharding: one device's block is not contiguous in the result",
    )
    return Array("C", (Dim("N", rows + columns),), o.a.partial)


def _running(o: Operands) -> Array:
    _refuse_where(
        o.a.partial,
        "Using pspec[...] is dangerous when PartitionSpec has non-empty unreduced/reduced set. "
        "Please use spec.partitions[...]",
        "this rule of JAX 0.12 does not support unreduced arrays: jax.reshard first",
    )
    _refuse_where(
        o.a.dims[0].axes,
        f"Input should be unsharded over the axis being reduced. Got input type={o.typed(o.a)} and axis=0",
        "a running sum needs the sums before it: shard the other dimension, by jax.reshard",
    )
    return o.a


RULES: dict[str, Rule] = {
    PRODUCT: _product,
    "A + B": _sum,
    "A * B": _times,
    RESHARD: lambda o: o.a if o.out is None else o.out,  # jax.reshard can reach every sharding
    "jnp.tanh(A)": _nonlinear,
    "A.T": lambda o: Array("C", o.a.dims[::-1], o.a.partial),
    "A.sum(0)": _summed(0),
    "A.sum(1)": _summed(1),
    "A[0]": _row,
    "A.reshape(-1)": _flat,
    "jnp.cumsum(A, 0)": _running,
}

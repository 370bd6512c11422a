"""Blocks without a memory: MLPs, experts and norms."""

from scalingbook_lib.models.blocks.block import Block, Shape, Shapes, products, vectors


def mlp_shapes(D: int, width: int, gated: bool, prefix: str = "") -> dict[str, Shape]:
    """The matrices of an MLP; a gated one has two matrices up, whose results are multiplied."""
    gate = {f"{prefix}gate": (D, width)} if gated else {}
    return {**gate, f"{prefix}up": (D, width), f"{prefix}down": (width, D)}


def mlp(D: int, F: int, *, gated: bool = True, bias: bool = False, more: Shapes | None = None) -> Block:
    """A dense MLP of width F; `more` are weights of its activation function."""
    shapes = mlp_shapes(D, F, gated)
    added = {f"{name} bias": shape[1:] for name, shape in shapes.items()} if bias else {}
    weights = (*products("mlp", shapes), *vectors("biases", added), *vectors("mlp", more or {}))
    return Block("MLP", weights)


def rwkv_mlp(D: int, F: int) -> Block:
    """RWKV-4's channel mixing: an MLP with squared ReLU, whose result a gate of the token's own scales."""
    shapes = {**mlp_shapes(D, F, gated=False), "receptance": (D, D)}
    return Block("MLP", (*products("mlp", shapes), *vectors("mlp", {"mix with the token before": (2, D)})))


def experts(
    D: int,
    *,
    E: int,
    k: int,
    F: int,
    shared: int = 0,
    gated: bool = True,
    inner: int | None = None,
    inner_norm: bool = False,
    prefix: str = "expert ",
    zero: int = 0,
    more: Shapes | None = None,
) -> Block:
    """E routed experts of width F, k of them active, and shared ones of width `shared` together.

    With `inner`, routed experts work on vectors of that width, between two more matrices. The router also
    scores `zero` experts without weights, which return their input. `more` are further weights of the router.
    """
    width = inner or D
    outer = {"expert in": (D, inner), "expert out": (inner, D)} if inner else {}
    return Block(
        "experts",
        (
            *products("router", {"router": (D, E + zero)}),
            *products("experts", mlp_shapes(width, F, gated, prefix), E, k),
            *products("shared experts", outer),
            *(products("shared experts", mlp_shapes(D, shared, gated, "shared ")) if shared else ()),
            *vectors("norms", {"expert norm": (inner,)} if inner and inner_norm else {}),
            *vectors("router", more or {}),
        ),
    )


def norms(D: int, n: int, *, shift: bool = False) -> Block:
    """n norms as wide as the residual stream, with a bias where `shift`."""
    each = {"layer norms": (D,), **({"layer norms: shift": (D,)} if shift else {})}
    return Block("norms", tuple(vectors("norms", each) * n))

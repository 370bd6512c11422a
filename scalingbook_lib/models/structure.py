"""Read the parts of a layer from the field names in use, whatever the model type.

The same part has several names in published files: each function here reads one part (experts, MLP, attention
and its kind by layer) under all of them. The tables of model types are built from these, and an unknown type
is read by them alone.
"""

from scalingbook_lib.models.dense import Shapes
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.parts import Experts, ModelError, printable

EXPERTS = "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"
CHOSEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "moe_topk",
    "moe_k",
    "top_k_experts",
)
SHARED = "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"
EXPERT_WIDTH = "moe_intermediate_size", "expert_ffn_hidden_size"
SHARED_WIDTHS = (
    "shared_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_expert_intermediate_size",
    "shared_experts_intermediate_size",
)
EXPERT_FIELDS = (*EXPERTS, *CHOSEN, *SHARED, *EXPERT_WIDTH, *SHARED_WIDTHS)
NAMES = {  # what is one kind of sublayer, under the names of several versions
    "attention": "full_attention",
    "mamba": "linear_attention",
    "mamba2": "linear_attention",
    "chunked_attention": "sliding_attention",
    "indexed_attention": "full_attention",
    "deepseek_sparse_attention": "full_attention",
    "short_conv": "conv",
    "-": "mlp",
    "*": "full_attention",
    "M": "linear_attention",
    "E": "moe",
    "hash_moe": "sparse",
}
PATTERNS = "hybrid_override_pattern", "layers_block_type", "layer_types", "layers_types"


def layers_of(f: Fields) -> int:
    """The number of layers: its own field, or the length of the list of their kinds."""
    for name in PATTERNS[:2]:
        kinds = f.value(name)
        if isinstance(kinds, list | str) and kinds:
            f.value("num_hidden_layers")
            return len(kinds)
    return f.number("num_hidden_layers", "num_layers", most=1000)


def mixers(f: Fields, L: int, otherwise: tuple[str, ...] = ("full_attention",)) -> tuple[str, ...]:
    """The kind of token mixer of each layer, as its list says or as `otherwise` repeats."""
    for name in PATTERNS:
        kinds = f.value(name)
        if kinds is not None:
            return _kinds(f, name, list(kinds) if isinstance(kinds, str) else kinds, L)
    return tuple(otherwise[i % len(otherwise)] for i in range(L))


def mlps(f: Fields, L: int, routed: bool) -> tuple[str, ...]:
    """Whether the MLP of each layer is dense or sparse: a list, the first dense ones, or steps."""
    kinds, frequency = f.value("mlp_layer_types"), f.value("moe_layer_freq")  # one may be a list
    first = f.number("first_k_dense_replace", "num_dense_layers", default=0, least=0, most=L)
    if kinds is not None:
        return _kinds(f, "mlp_layer_types", kinds, L)
    if isinstance(frequency, list):
        return _kinds(f, "moe_layer_freq", ["sparse" if one else "dense" for one in frequency], L)
    f.require(moe_layer_freq=1)
    return tuple("sparse" if routed and i >= first else "dense" for i in range(L))


def _kinds(f: Fields, name: str, kinds: object, L: int) -> tuple[str, ...]:
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise ModelError(name, f"{printable(kinds)} is not a list of names", "write a name for each layer")
    extra = f.number("num_nextn_predict_layers", default=0, least=0, most=L)
    if len(kinds) not in (L, L + extra):  # some files list the layers that predict a token more, too
        broke = f"its {len(kinds)} entries contradict num_hidden_layers, {L}"
        raise ModelError(name, broke, "write one for each layer")
    names: list[str] = kinds[:L]
    return tuple(NAMES.get(kind, kind) for kind in names)


def per_layer(f: Fields, L: int) -> tuple[Fields, ...]:
    """The fields of each layer: those of `per_layer_config` replace the file's."""
    given = f.value("per_layer_config") or {}
    valid = isinstance(given, dict) and all(
        isinstance(key, str) and key.isdecimal() and isinstance(own, dict) for key, own in given.items()
    )
    if not valid:
        raise ModelError(
            "per_layer_config", f"{printable(given)} is not an object by layer", "write it in { }"
        )
    own = {int(key): value for key, value in given.items()}
    return tuple(f.overridden(**own[i]) if i in own else f for i in range(L))


def routed(f: Fields) -> bool:
    """Whether the file has routed experts."""
    return bool(f.value(*EXPERTS))


def experts_of(f: Fields, *, width: str = "", **more: int | bool | None) -> Experts:
    """The routed and shared experts, under any of their names; `width` is another field with F."""
    E, k = f.number(*EXPERTS), f.number(*CHOSEN)
    if k > E:
        name = next(n for n in CHOSEN if f.config.get(n) is not None)
        raise ModelError(name, f"{k} contradicts the number of experts, {E}", "lower it")
    F = f.number(*((width,) if width else EXPERT_WIDTH))
    shared = f.number(*SHARED, default=0, least=0)
    wide = next((n for name in SHARED_WIDTHS if (n := f.optional(name, least=0)) is not None), None)
    if wide is not None:  # the width of all shared experts together
        shared = 1 if wide else 0
    return Experts(E=E, k=k, F=F, shared=shared, shared_F=wide or None, **more)  # type: ignore[arg-type]


def evenly(f: Fields, kinds: tuple[str, ...]) -> dict[str, int] | None:
    """`first_dense` and `every` of `Experts` for these kinds of MLP; None where no such numbers fit."""
    L = len(kinds)
    first = next((i for i, kind in enumerate(kinds) if kind == "sparse"), L)
    if kinds == ("dense",) * first + ("sparse",) * (L - first):
        return {"first_dense": first}
    every = first + 1
    fits = kinds == tuple("sparse" if (i + 1) % every == 0 else "dense" for i in range(L))
    return {"every": every} if fits else None


def shapes_with_experts(f: Fields, m: Shapes, *, width: str = "") -> Experts | None:
    """The experts of a model whose layers have the same attention; None where it has none."""
    if not any(f.value(name) for name in (*EXPERTS, *CHOSEN, *EXPERT_WIDTH)):
        return None
    placed = evenly(f, mlps(f, m["L"], routed=True))
    if placed is None:
        raise ModelError(
            "mlp_layer_types", "the sparse layers come at uneven steps", "list the dense layers first"
        )
    return experts_of(f, width=width, **placed)

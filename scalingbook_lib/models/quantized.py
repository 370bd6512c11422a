"""Read `quantization_config` and the other fields that say in which types a file keeps weights and caches.

An entry of `METHODS` for each `quant_method`. A method that is not in the table is named, not guessed.
"""

import re
from collections.abc import Callable, Mapping

from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.parts import ModelError, printable
from scalingbook_lib.models.quantization import QuantizedFormat, Scheme

MXFP4 = QuantizedFormat("mxfp4", 4, (1, 32), 1)  # a power of two for 32 elements
NVFP4 = QuantizedFormat("nvfp4", 4, (1, 16), 1, 8)  # an fp8 scale for 16, and two fp32 scales of the matrix
MXFP8 = QuantizedFormat("mxfp8", 8, (1, 32), 1)
FP8 = QuantizedFormat("fp8", 8, None, 0, 8)  # two fp32 scales: of the weights and of the inputs
ALGORITHMS = {
    "NVFP4": NVFP4,
    "FP8": FP8,
    "MXFP8": MXFP8,
    "MXFP4": MXFP4,
    "NVFP4_AWQ": NVFP4,
    "W4A16_NVFP4": NVFP4,
}
DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.float32": "fp32",
}
CACHES = {
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "int8": "int8",
    "nvfp4": "fp4",
}
CACHES |= DTYPES | {"bf16": "bf16", "fp16": "fp16", "auto": ""}
SKIPPED = "modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "modules_to_not_quantize"
OUTSIDE = ("lm_head", "head")


BY_NAME = "by name"
"""The method of a scheme that the name of a checkpoint tells, and no file."""
NAMED_FORMATS = {
    "fp8": FP8,
    "nvfp4": NVFP4,
    "mxfp4": MXFP4,
    "int4": QuantizedFormat("int4", 4, (1, 128), 2.5),  # AWQ's groups, with an fp16 scale and a zero point
    "int8": QuantizedFormat("int8", 8, (1, 0), 2),
}
"""The usual format of each type of `published_names.stored_type`."""
_NAMED_INPUTS = {"fp8": "fp8", "nvfp4": "fp4", "int8": "int8"}
_ALGORITHM_INPUTS = {"FP8": "fp8", "MXFP8": "fp8", "NVFP4": "fp4", "NVFP4_AWQ": "fp4", "MXFP4": "fp4"}


def by_name(kind: str) -> Scheme:
    """The usual scheme of checkpoints whose name says that their weights are stored in this type."""
    return Scheme(BY_NAME, NAMED_FORMATS[kind], OUTSIDE, inputs=_NAMED_INPUTS.get(kind, ""))


def named_format(scheme: Scheme | None) -> str:
    """The type that the name of the checkpoint tells; "" where a file tells it or nothing is quantized."""
    return scheme.default.name if scheme and scheme.method == BY_NAME and scheme.default else ""


def base_dtype(f: Fields) -> str:
    """The type of what is not quantized: bf16 unless the file says another one."""
    name = f.value("dtype", "torch_dtype")
    return DTYPES.get(name, "bf16") if isinstance(name, str) else "bf16"


def scheme(f: Fields) -> Scheme | None:
    """The formats of a file; None where it stores everything in its base type.

    ModelError where a field of its `quantization_config` has a value that no file has.
    """
    q = f.inner("quantization_config")
    kv = _cache(f, q)
    if not q.config:
        return Scheme("", None, kv=kv) if kv else None
    method = q.value("quant_method") or ("modelopt" if q.value("quant_algo") else "")
    if not isinstance(method, str):
        raise ModelError(
            "quantization_config.quant_method", f"{printable(method)} is not a name", "write a text"
        )
    if q.value("quant_algo"):
        method = "modelopt"
    if method not in METHODS:
        return Scheme(method or "unnamed", None, kv=kv)
    made = METHODS[method](q, f)
    skipped = (*_skipped(q), *made.skip)
    return Scheme(method, made.default, skipped, made.named, made.parts, kv, made.inputs)


def not_counted(found: Scheme | None) -> tuple[str, ...]:
    """What is said of a method that is not in the table."""
    if found is None or not found.method or found.method in METHODS or found.method == BY_NAME:
        return ()
    return (f"quantization by {found.method!r}: bytes are those of the base type",)


def _cache(f: Fields, q: Fields) -> str | None:
    """The type of the KV cache, from any of the fields that name one."""
    for fields, name in ((f, "kv_cache_dtype"), (q, "kv_cache_quant_algo"), (q, "kv_cache_scheme")):
        said = fields.value(name)
        if isinstance(said, dict):
            said = (
                f"fp{said.get('num_bits')}" if said.get("type") == "float" else f"int{said.get('num_bits')}"
            )
        if said is None:
            continue
        if not isinstance(said, str) or said.lower() not in CACHES:
            raise ModelError(
                name, f"{printable(said)} is no type of a cache", f"write one of {', '.join(CACHES)}"
            )
        return CACHES[said.lower()] or None
    return None


def _skipped(q: Fields) -> tuple[str, ...]:
    named = [one for name in SKIPPED for one in (q.listed(name) or [])]
    return tuple(dict.fromkeys(map(_pattern, named)))


def _pattern(name: object) -> str:
    """The name or the pattern of modules; ModelError where it is neither."""
    if not isinstance(name, str) or len(name) > 500:
        raise ModelError(
            "modules_to_not_convert", f"{printable(name)} is not a name of a module", "write a text"
        )
    if name.startswith("re:"):
        if re.search(r"[+*}]\)+[+*?{]", name):  # may take forever
            raise ModelError("ignore", f"{printable(name)} repeats a repetition", "write it without")
        try:
            re.compile(name[3:])
        except re.error as error:
            raise ModelError("ignore", f"{printable(name)} is no regular expression", "mend it") from error
    return name.rstrip(".")


def _fp8(q: Fields, f: Fields) -> Scheme:
    """DeepSeek's blocks of 128 × 128 with an fp32 scale each, or one scale for each matrix."""
    block = q.listed("weight_block_size")
    if block is not None and (len(block) != 2 or not all(type(n) is int and n > 0 for n in block)):
        raise ModelError("weight_block_size", f"{printable(block)} is no block", "write it as in [128, 128]")
    static = 4 if q.value("activation_scheme") == "static" else 0
    form = (
        QuantizedFormat("fp8", 8, tuple(block), 4, static)
        if block
        else QuantizedFormat("fp8", 8, None, 0, 4 + static)
    )
    experts = q.value("expert_dtype") or f.value("expert_dtype")
    named = (("re:.*[.]experts[.].*", MXFP4),) if experts == "fp4" else ()
    return Scheme("fp8", form, OUTSIDE, named, inputs="fp8")


def _mxfp4(q: Fields, f: Fields) -> Scheme:
    return Scheme("mxfp4", MXFP4, parts=("experts",))


def _rows(q: Fields, f: Fields) -> Scheme:
    """One fp32 scale for each row of a matrix (FBGEMM)."""
    return Scheme("fbgemm_fp8", QuantizedFormat("fp8", 8, (1, 0), 4), OUTSIDE, inputs="fp8")


def _groups(q: Fields, f: Fields) -> Scheme:
    """GPTQ and AWQ: groups of a column's elements with an fp16 scale and a zero point."""
    bits = q.number("bits", "w_bit", most=16)
    group = q.value("group_size", "q_group_size")
    group = 0 if group in (-1, None) else q.number("group_size", "q_group_size")
    return Scheme("gptq", QuantizedFormat(f"int{bits}", bits, (1, group), 2 + bits / 8), OUTSIDE)


def _bitsandbytes(q: Fields, f: Fields) -> Scheme:
    if q.flag("load_in_4bit", False):
        double = q.flag("bnb_4bit_use_double_quant", False)
        return Scheme("bnb", QuantizedFormat("nf4", 4, (1, 64), 1 + 4 / 256 if double else 4), OUTSIDE)
    return Scheme("bnb", QuantizedFormat("int8", 8, (1, 0), 4), OUTSIDE)


def _compressed(q: Fields, f: Fields) -> Scheme:
    """compressed-tensors: groups of modules, each with bits, a type and a strategy for scales."""
    default, named, inputs = None, [], ""
    for name, group in q.inner("config_groups").config.items():
        weights = Fields(group if isinstance(group, dict) else {}).inner("weights")
        if not weights.config:
            raise ModelError(
                f"config_groups.{printable(name)}", "it has no weights", "write their bits and type"
            )
        form = _form(weights)
        cast = Fields(group).inner("input_activations")
        if cast.config:
            inputs = f"{'fp' if cast.value('type') == 'float' else 'int'}{cast.number('num_bits', most=16)}"
        targets = Fields(group).listed("targets") or ["Linear"]
        if "Linear" in targets:
            default = form
        else:
            named += [(_pattern(one), form) for one in targets]
    known = inputs if inputs in ("fp8", "fp4", "int8") else ""
    return Scheme("compressed-tensors", default, named=tuple(named), inputs=known)


def _form(w: Fields) -> QuantizedFormat:
    """The format that compressed-tensors describes."""
    bits, kind = w.number("num_bits", most=16), w.value("type")
    group, strategy = w.optional("group_size"), w.value("strategy")
    if kind == "float" and bits == 4:
        return MXFP4 if group == 32 else NVFP4
    name = f"{'fp' if kind == 'float' else 'int'}{bits}"
    if strategy == "block" or w.value("block_structure"):
        return QuantizedFormat(name, bits, (128, 128), 4)
    if group:
        return QuantizedFormat(name, bits, (1, group), 2)
    return (
        QuantizedFormat(name, bits, (1, 0), 2)
        if strategy == "channel"
        else QuantizedFormat(name, bits, None, 0, 8)
    )


def _modelopt(q: Fields, f: Fields) -> Scheme:
    """NVIDIA's ModelOpt: one algorithm, or one by module."""
    layers = q.inner("quantized_layers")
    named = [(_pattern(name), _algorithm(layers.inner(name))) for name in layers.config]
    algorithm = q.value("quant_algo")
    if algorithm == "MIXED_PRECISION":
        moe = q.value("moe_quant_algo")
        rest = _fp8(q, f).default if q.value("quant_method") == "fp8" else None
        form = ALGORITHMS.get(str(moe))
        experts = [("re:.*[.]experts[.].*", form)] if form else []
        return Scheme("modelopt", rest, OUTSIDE, tuple(named + experts), inputs="fp8")
    inputs = _ALGORITHM_INPUTS.get(str(q.value("quant_algo")), "")
    return Scheme("modelopt", _algorithm(q), named=tuple(named), inputs=inputs)


def _algorithm(q: Fields) -> QuantizedFormat:
    name = q.value("quant_algo")
    if not isinstance(name, str) or name not in ALGORITHMS:
        raise ModelError(
            "quant_algo", f"{printable(name)} is unknown", f"write one of {', '.join(ALGORITHMS)}"
        )
    return ALGORITHMS[name]


METHODS: Mapping[str, Callable[[Fields, Fields], Scheme]] = {
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "fbgemm_fp8": _rows,
    "gptq": _groups,
    "awq": _groups,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
}

"""Extracts the author's named scopes from the path of an operation (`op_name`).

A path such as `jit(step)/transpose(jvp(up))/while/body/dot_general` reads `up backward/loop`: JAX's own calls
are left out, a loop is named, and a scope's backward pass is distinguished from its forward pass.
"""

import re

# What JAX itself puts into a path, in JAX 0.7 to 0.12; `pjit` and `jit(name)` are equivalent.
_MACHINERY = {
    "shard_map",
    "eval_jaxpr",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "checkpoint",
    "remat",
    "rematted_computation",
    "pjit",
    "body",
    "cond",
    "branch",
}
_CALL = re.compile(r"(?:jit|pjit|vmap|pmap|shard_map|xla_call)\(.*\)$")
# Differentiation wraps the author's name: jvp(up) computes the value and saves what the backward pass needs,
# transpose(jvp(up)) is the backward pass.
_BACKWARD, _FORWARD = re.compile(r"transpose\(jvp\((.*)\)\)$"), re.compile(r"jvp\((.*)\)$")


def scope_names(source: str, *, primitive: bool = True) -> tuple[str, ...]:
    """The named scopes of a path, outermost first; with `primitive`, its last part is a primitive."""
    # a scope that is entered twice (in forward and backward, in a loop) is named once, at its first position
    parts = source.split("/")[:-1] if primitive else source.split("/")
    return tuple(dict.fromkeys(name for name in map(_scope_name, parts) if name))


def _scope_name(part: str) -> str:
    """The named scope in one part of a path; "" if the part is JAX's own."""
    if part in _MACHINERY or _CALL.match(part) or re.match(r"branch_\d+_fun", part):
        return ""
    if part == "while":
        return "loop"
    if backward := _BACKWARD.match(part):
        return f"{backward[1]} backward" if backward[1] else ""
    forward = _FORWARD.match(part)
    return forward[1] if forward else part

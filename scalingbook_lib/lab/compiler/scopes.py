"""Which names did the author give to a piece of a program? The path of an operation, without the machinery.

A path as XLA keeps it, `jit(step)/transpose(jvp(up))/while/body/dot_general`, reads `up backward/loop`: calls
of JAX itself are left out, a loop is named, and the backward pass of a scope is told from its forward pass.
"""

import re

# What JAX itself puts into a path, as seen in JAX 0.7 to 0.12; `pjit` and `jit(name)` are the same in turn.
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
# Differentiation wraps the author's name: jvp(up) computes the value and keeps what the backward pass needs,
# transpose(jvp(up)) is the backward pass.
_BACKWARD, _FORWARD = re.compile(r"transpose\(jvp\((.*)\)\)$"), re.compile(r"jvp\((.*)\)$")


def named(source: str, *, primitive: bool = True) -> tuple[str, ...]:
    """The named scopes of a path, outermost first; with `primitive`, its last part is one and is left out."""
    # a scope that is entered twice (in forward and backward, in a loop) is named once, where it comes first
    parts = source.split("/")[:-1] if primitive else source.split("/")
    return tuple(dict.fromkeys(name for name in map(_name, parts) if name))


def _name(part: str) -> str:
    if part in _MACHINERY or _CALL.match(part) or re.match(r"branch_\d+_fun", part):
        return ""
    if part == "while":
        return "loop"
    if backward := _BACKWARD.match(part):
        return f"{backward[1]} backward" if backward[1] else ""
    forward = _FORWARD.match(part)
    return forward[1] if forward else part

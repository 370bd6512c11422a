"""Lists a program line by line with the named scope of each line: jaxpr, StableHLO and HLO.

Each function returns pairs of a line and the path of scopes that it comes from, without file paths and
without the compiler's configuration.
"""

import re
from collections.abc import Iterator
from typing import Any

type Written = Iterator[tuple[str, str]]

# StableHLO ends with a table of locations, `#loc7 = loc("jit(f)/up/tanh"(#loc3))`, to which `loc(#loc7)`
# refers
# at the end of a line.
_LOC_NAMED = re.compile(r'^(#loc\d*) = loc\("([^"]*)"\(')
_LOC_USED = re.compile(r"\s*loc\((?:(#loc\d*)|[^()]*)\)")
# A jaxpr printed with `name_stack=True` has the path as a comment, `# [up]`, after each equation.
_NAME_STACK = re.compile(r"\s*# \[(.*)\]\s*$")
# Source locations of this machine would make stored outputs differ from machine to machine.
_NOISE = re.compile(
    r"( stack_frame_id=\d+| source_(?:file|line|end_line|column|end_column)=(?:\"[^\"]*\"|\d+)|"
    r", frontend_attributes=\{.*?\}(?=$|, metadata=))"
)
# Tables at the top of an HLO module to which `stack_frame_id` refers: a title, then numbered lines.
_FRAMES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def jaxpr(closed: Any) -> Written:
    """The lines of a jaxpr, whose scopes follow the first line of each equation."""
    source, depth = "", 0
    for line in closed.pretty_print(name_stack=True, source_info=False, use_color=False).splitlines():
        found = _NAME_STACK.search(line)
        bare = _NAME_STACK.sub("", line).rstrip()
        # an equation with an inner jaxpr (a loop, a jit) continues until its brackets close: one source for
        # all
        if depth == 0:
            source = found[1] if found else ""
        yield bare, source
        depth = max(depth + bare.count("[") - bare.count("]"), 0)


def stablehlo(text: str) -> Written:
    """The lines of StableHLO, whose operations refer to locations named by the path of scopes."""
    found = filter(None, map(_LOC_NAMED.match, text.splitlines()))
    named = {str(m[1]): str(m[2]) for m in found}
    for line in text.splitlines():
        if line.startswith("#loc") or not line.strip():
            continue
        places = [place for place in _LOC_USED.findall(line) if place]
        source = named.get(places[-1], "") if places else ""
        yield _LOC_USED.sub("", line), source


def hlo(text: str) -> Written:
    """The lines of HLO before or after optimization; the path is each instruction's `op_name`."""
    skipping = False
    for line in text.splitlines():
        skipping = line in _FRAMES or (skipping and line[:1].isdigit())
        if skipping or not line.strip():
            continue
        named = re.search(r'op_name="([^"]*)"', line)
        yield _plain(line), named[1] if named else ""


def _plain(line: str) -> str:
    """A line without the backend's configuration and without locations in source files."""
    kept = _NOISE.sub("", re.sub(r", backend_config=\{.*\}$", "", line))
    return re.sub(r", metadata=\{\}", "", kept)

"""Every function of the library is used by something other than its tests."""

import ast
import re
from collections import Counter

from tools import size
from tools.environment import ROOT

CALLED_BY_CLICK = {"shell_complete", "get_metavar"}
CALLED_BY_PAGES = {"workbench_json"}


def functions():
    """Every function of the library by name, with its place."""
    for module, text in size.sources().items():
        if module.startswith("scalingbook_lib/"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield node.name, f"{module}:{node.lineno} {node.name}"


def test_every_function_is_named_outside_its_definition():
    readers = [*ROOT.glob("*.md"), *(ROOT / "jobs").glob("*.*")]
    readers += [path for folder in ("chapters", "solutions") for path in (ROOT / folder).glob("*.md")]
    texts = [path.read_text(encoding="utf-8") for path in readers]
    texts += [text for module, text in size.sources().items() if not module.startswith("tests/")]
    used = Counter(re.findall(r"\w+", "\n".join(texts)))
    called = CALLED_BY_CLICK | CALLED_BY_PAGES
    unused = {
        place
        for name, place in functions()
        if used[name] == 1 and name not in called and not name.startswith("__")
    }
    assert unused == set()

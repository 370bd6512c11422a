"""Report how large the project is, and which functions and modules are long: `make size`.

The numbers are a report, and no test compares them with a limit. `make lint` prints the warnings: a function
of more than 40 lines, a module of more than 250. A comment `# long: <reason>` in the function's first line,
or as a line of its own in the module, says why it is better in one piece, and silences the warning.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools import pages, words
from tools.environment import PACKAGES, ROOT

FOLDERS = (*PACKAGES, "tools", "web", "benchmarks", "tests")
LINES_OF_A_MODULE, LINES_OF_A_FUNCTION = 250, 40
REASON = "# long: "


@cache
def sources() -> dict[str, str]:
    """Return the text of every module by its path below the root."""
    found = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if "node_modules" not in path.parts
    }


def package(module: str) -> str:
    """Return the folder below the library, or the folder below the root, that holds a module."""
    parts = Path(module).parts
    return "/".join(parts[: 2 if parts[0] in PACKAGES and len(parts) > 2 else 1])


def warnings() -> Iterator[str]:
    """Yield a sentence for each long module and each long function that gives no reason."""
    for module, text in sources().items():
        lines = text.splitlines()
        if len(lines) > LINES_OF_A_MODULE and not any(line.startswith(REASON) for line in lines):
            yield f"{module}: {len(lines)} lines; split it, or say why not in a line `{REASON}<reason>`"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                long = (node.end_lineno or node.lineno) - node.lineno + 1
                if long > LINES_OF_A_FUNCTION and REASON not in lines[node.lineno - 1]:
                    yield f"{module}:{node.lineno}: `{node.name}` has {long} lines; take a step out of it"


def report() -> Iterator[str]:
    """Yield the lines of code of each package, and the words of the main text and of the deeper pages."""
    count: Counter[str] = Counter()
    for module, text in sources().items():
        count[package(module)] += len(text.splitlines())
    yield from (f"{name:36}{lines:8,} lines" for name, lines in sorted(count.items()))
    yield f"{'all Python':36}{sum(count.values()):8,} lines"
    lengths = {page: words.of(page).words for page in pages.every()}
    for name, deeper in (("chapters, main text", False), ("deeper pages", True)):
        yield f"{name:36}{sum(n for page, n in lengths.items() if page.deeper == deeper):8,} words"


def main() -> None:
    """Print the report and the warnings, or with `--warnings` these alone."""
    if "--warnings" not in sys.argv:
        print(*report(), sep="\n")
    for warning in warnings():
        print(f"warning: {warning}")


if __name__ == "__main__":
    main()

"""How does a terminal, or another program, ask the library? `scalingbook model llama3-70b`, and so on.

The wing reads what is typed, calls the library and prints: a table for people, `--json` for programs,
`--explain` for the derivation. It computes nothing by itself. The extra `cli` brings what it needs.
"""

import sys

TYPE_CHECKING = False  # `typing` takes so long to load that an interrupt may come meanwhile
if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDS = ("click", "rich")
HELP = ["-h", "--help"]
INTERRUPTED = 130
FAILED = 1  # no answer, though the question was a fair one


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command line and return its exit code: 0 answered, 1 it cannot be done, 2 bad input."""
    try:
        from scalingbook_lib.cli import script
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDS:
            raise
        print(
            f"scalingbook: the command line needs {error.name}, which is not installed; "
            f"write pip install {' '.join(NEEDS)}",
            file=sys.stderr,
        )
        return FAILED
    except KeyboardInterrupt:  # before there is a command that could say what it has
        return INTERRUPTED
    return script.run(argv)

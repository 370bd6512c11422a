"""The command line `scalingbook`, which asks the library: `scalingbook model llama3-70b`, and so on.

It parses arguments, calls the library and prints: tables for people, `--json` for programs, `--explain` for
the derivation. It computes nothing itself. The optional dependencies named cli install what it needs.
"""

import sys

TYPE_CHECKING = False  # importing `typing` takes long enough to be interrupted
if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDS = ("click", "rich")
HELP = ["-h", "--help"]
INTERRUPTED = 130
FAILED = 1  # a valid question without an answer
LIMIT_EXCEEDED = 3  # a program exceeds a limit that was given


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command line and return its exit code: 0 answered, 1 it cannot be done, 2 bad input,
    3 a limit is exceeded."""
    try:
        from scalingbook_cli import script
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDS:
            raise
        print(
            f"scalingbook: the command line needs {error.name}, which is not installed; "
            f"run pip install {' '.join(NEEDS)}",
            file=sys.stderr,
        )
        return FAILED
    except KeyboardInterrupt:  # interrupted before a command started
        return INTERRUPTED
    return script.run(argv)

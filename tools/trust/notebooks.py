"""Sign the notebooks of the repository for JupyterLab, so that it shows their drawings.

`python -m tools.trust.notebooks`, for `make lab`. A notebook that was added or changed locally is listed and
not signed, because its stored outputs could run scripts.
"""

import subprocess
import sys
from pathlib import Path

from tools.environment import ROOT

FOLDERS = ("chapters", "solutions", "exercises")


def told(*others: str) -> None:
    """Print which notebooks are not trusted, and what to do if they should be."""
    print(f"not trusted, as the repository does not hold them so: {', '.join(others)}", file=sys.stderr)
    print("(read them first; then, in JupyterLab: File, Trust Notebook)", file=sys.stderr)


def git(root: Path, *words: str, told: str = "") -> list[str]:
    """Return git's output, split into items."""
    done = subprocess.run(["git", *words], cwd=root, input=told, capture_output=True, text=True, check=True)
    return done.stdout.replace("\0", "\n").splitlines()


def held(root: Path = ROOT) -> set[str]:
    """Return the paths of the notebooks whose content is that of the last commit."""
    try:
        rows = git(root, "ls-tree", "-r", "-z", "HEAD", *FOLDERS)
        committed = {path: about.split()[2] for about, path in (row.split("\t") for row in rows)}
        here = [path for path in found(root) if path in committed]
        digests = git(root, "hash-object", "--stdin-paths", told="\n".join(here))
    except (OSError, subprocess.CalledProcessError):  # no git, or a copy that is not a repository
        return set()
    return {path for path, digest in zip(here, digests, strict=True) if digest == committed[path]}


def found(root: Path = ROOT) -> list[str]:
    """Return every notebook in the tree."""
    paths = (path for folder in FOLDERS for path in sorted((root / folder).glob("*.ipynb")))
    return [path.relative_to(root).as_posix() for path in paths]


def main() -> int:
    """Sign the committed notebooks, and list the others."""
    trusted = held()
    if others := [path for path in found() if path not in trusted]:
        told(*others)
    if trusted:
        command = [Path(sys.executable).with_name("jupyter"), "trust", *sorted(trusted)]
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Compare a runtime's packages with the versions that `make alone` runs on: `python -m tools.canary FILE`.

FILE is what `pip freeze` printed in a fresh Colab session. The pins are those of `tools/colab.in`, which say
what Colab had, and those that follow from them in `tools/colab.txt`.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.environment import ROOT

PINS, LOCKED = ROOT / "tools" / "colab.in", ROOT / "tools" / "colab.txt"
ABSENT = "absent"
OTHER_PINS = {"libtpu": "0.0.21.1"}
"""What Colab had where `tools/colab.in` pins another version: this libtpu cannot compile ahead of time."""


class Difference(NamedTuple):
    """A package with another version than expected; `direct` if `tools/colab.in` names it."""

    package: str
    pinned: str
    found: str
    direct: bool

    def __str__(self) -> str:
        return f"{self.package}: {self.pinned} expected, {self.found} there"


def versions(text: str) -> dict[str, str]:
    """Return the version of each package in a requirements file or a freeze, by its normalized name."""
    found = {}
    for line in text.splitlines():
        at = re.match(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^]]*\]\s*)?==\s*([^\s;\\]+)", line)
        wheel = re.match(r"\s*([A-Za-z0-9][\w.-]*)\s*@\s*\S*?/[^/]*?-(\d[^-]*)-[^/]*\.whl", line)
        if read := at or wheel:
            found[normalized(read[1])] = read[2]
    return found


def normalized(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def differences(frozen: Mapping[str, str]) -> list[Difference]:
    """Return every pinned package that the runtime has in another version, or lacks; direct pins first.

    Packages that only follow from others are compared where both have them.
    """
    direct, locked = (versions(path.read_text(encoding="utf-8")) for path in (PINS, LOCKED))
    pinned = locked | direct | OTHER_PINS
    named = [
        Difference(name, version, frozen.get(name, ABSENT), name in direct)
        for name, version in pinned.items()
        if name in direct or name in frozen
    ]
    return sorted(
        (one for one in named if one.found != one.pinned), key=lambda one: (not one.direct, one.package)
    )


def report(found: Iterable[Difference]) -> str:
    """Return the differences for people."""
    found = list(found)
    if not found:
        return "The runtime has every pinned version."
    lines = []
    for direct, title in ((True, "Pinned in tools/colab.in:"), (False, "Pinned only in tools/colab.txt:")):
        some = [f"  {one}" for one in found if one.direct == direct]
        lines += [title, *some] if some else []
    again = "Change tools/colab.in, run the command at its top, then `make colab`."
    return "\n".join([*lines, again])


def main(arguments: list[str]) -> int:
    """Print the differences, and return 1 if a direct pin differs."""
    if len(arguments) != 1:
        raise SystemExit("write one file: make canary FILE=freeze.txt, with what `pip freeze` printed there")
    path = Path(arguments[0])
    if not path.is_file():
        raise SystemExit(f"{path} is no file; paste what `pip freeze` printed in the runtime into it")
    frozen = versions(path.read_text(encoding="utf-8", errors="replace"))
    if not frozen:
        raise SystemExit(f"{path} has no line such as jax==0.7.2; it should be what `pip freeze` printed")
    found = differences(frozen)
    print(report(found))
    return int(any(one.direct for one in found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

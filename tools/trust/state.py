"""Store the results of a long run, one line of JSON each, so that it can be interrupted."""

import json
from pathlib import Path

from tools.environment import ROOT

FOLDER = ROOT / ".make" / "trust"


class State:
    """The result of each key; a line that a kill has truncated is computed again."""

    def __init__(self, name: str, folder: Path = FOLDER) -> None:
        self.path = folder / f"{name}.jsonl"
        self.known: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        whole, _, half = text.rpartition("\n")
        if half:
            self.path.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
        for line in whole.splitlines():
            self.known |= dict([json.loads(line)])

    def keep(self, key: str, found: str) -> None:
        """Store a result for this run and later ones."""
        self.known[key] = found
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, found], ensure_ascii=False) + "\n")

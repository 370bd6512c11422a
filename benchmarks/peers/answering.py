"""Answer questions in a peer's environment: JSON questions in, predictions or reasons for none out."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version


def main(package: str, rules: Mapping[str, Callable[[dict], float]]) -> None:
    """Answer each question by the rule of its table, in seconds per step or tokens per second."""
    told, stdout = [], sys.stdout
    questions = json.load(sys.stdin)
    sys.stdout = sys.stderr  # some peers print while they run
    for one in questions:
        if one["table"] not in rules:
            continue  # the page states once what a tool does not model at all
        try:
            told.append({"id": one["id"], "says": float(rules[one["table"]](one))})
        except Exception as error:
            told.append({"id": one["id"], "refused": _why(error)[:160]})
    json.dump({"version": version(package), "answers": told}, stdout)


def _why(error: Exception) -> str:
    """Return the error in one line, without the names of this machine's files."""
    if isinstance(error, KeyError):
        return f"does not know {error.args[0]}"
    download = re.match(r"Failed to download ([\w./-]+)'s config", str(error))
    if download:
        return f"has no configuration of {download[1]}"
    return " ".join(re.sub(r" '/[^']*'", "", str(error)).split())


def served(one: dict, prefill_s: Callable[[int], float], decode_s: Callable[[int], float]) -> float:
    """Return tokens per second of B sequences from the time of B prompts of P tokens and of a step at context
    S.

    Such tools do not simulate a queue, so a saturated server is asked about as one batch: prompts first, then
    G decode steps.
    """
    B, P, G = one["B"], one["P"], one["G"]
    if one["kind"] == "prefill":
        return B * P / prefill_s(P)
    if one["kind"] == "decode":
        return B / decode_s(one["S"] or P)
    return B * G / (prefill_s(P) + G * decode_s(P + G // 2))

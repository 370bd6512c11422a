"""A search for a chip by its name as people, clouds and drivers write it.

A name is split into words: vendors and form factors are ignored (NVIDIA, SXM5, HBM3), a memory size selects a
variant, and the remaining words must be the whole name of a chip.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import GB, GiB, binary

_MAKERS = {
    "nvidia", "amd", "google", "intel", "aws", "tesla", "geforce", "instinct", "cloud", "tpu", "gpu",
    "tensor", "core", "ada", "lovelace", "blackwell", "hopper", "ampere", "generation", "edition",
    "superchip", "apple", "radeon", "cerebras",
}  # fmt: skip
_FORMS = re.compile(r"sxm\d?|oam|hbm\d?e?|gddr\d?x?|nvl8|nvl72|dgx|hgx|mezzanine")
_MEMORY = re.compile(r"(\d{2,3})(?:gib|gb|g)")
_ALSO = {
    "trillium": "TPU v6e",
    "v6lite": "TPU v6e",
    "ironwood": "TPU7x",
    "v7x": "TPU7x",
    "v5lite": "TPU v5e",
    "v5litepod": "TPU v5e",
    "mi250x": "MI250X GCD",
    "mi250": "MI250X GCD",
    "rtxpro6000": "RTX PRO 6000 SE",
    "rtxpro6000server": "RTX PRO 6000 SE",
    "rtxpro6000workstation": "RTX PRO 6000 WS",
    "rtx6000": "RTX 6000 Ada",  # without the word Ada, which names a generation
    "rtx5000": "RTX 5000 Ada",
    "a6000": "RTX A6000",
    "a5000": "RTX A5000",
    "a4000": "RTX A4000",
    "4070": "RTX 4070",
    "4070ti": "RTX 4070 Ti",
    "4080": "RTX 4080",
    "5080": "RTX 5080",
    "7900xtx": "RX 7900 XTX",
    "prow7900": "W7900",
    "gb10": "DGX Spark",
    "agxorin": "Jetson AGX Orin",
    "jetsonorin": "Jetson AGX Orin",
    "agxthor": "Jetson AGX Thor",
    "jetsonthor": "Jetson AGX Thor",
    "trainium": "Trainium1",
    "inferentia2": "Trainium1",
    "3090": "RTX 3090",
    "4090": "RTX 4090",
    "5090": "RTX 5090",
    "trn1": "Trainium1",
    "trn2": "Trainium2",
    "trn3": "Trainium3",
    "inf2": "Trainium1",
}


def spelled(name: str) -> str:
    """The letters and digits of a name, without the vendor's: 'v5e' for 'TPU v5e', '7x' for 'TPU7x'."""
    return "".join(re.findall(r"[a-z0-9]+", name.lower())).removeprefix("tpu")


def find(name: str, known: Mapping[str, Chip]) -> Chip:
    """The chip of `known` with this name.

    Raises a ValueError that lists the nearest names if there is none.
    """
    by_key = {spelled(one): chip for one, chip in known.items()}
    by_key |= {also: known[one] for also, one in _ALSO.items() if one in known}
    words = [word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in _MAKERS]
    if found := by_key.get(spelled(name)) or by_key.get("".join(words).removeprefix("tpu")):
        return found
    joined = re.sub(r"(\d{2,3}) +(gib|gb)\b", r"\1\2", " ".join(words))
    rest = [word for word in joined.split() if not _FORMS.fullmatch(word)]
    memory = next((int(m[1]) for word in rest if (m := _MEMORY.fullmatch(word))), 0)
    key = "".join(word for word in rest if not _MEMORY.fullmatch(word)).removeprefix("tpu")
    if memory and (variant := by_key.get(f"{key}{memory}gb")):
        return variant
    found = by_key.get(key)
    if found and memory and not _has(found, memory):
        like = [one.name for of, one in by_key.items() if of.startswith(key) and _has(one, memory)]
        raise ValueError(
            f"there is no chip {name!r} in the catalog: {found.name} has {binary(found.hbm_bytes)}, not "
            f"{memory} GB; write {' or '.join(dict.fromkeys([*like, found.name]))}, with the memory size if "
            "there are several"
        )
    if found:
        return found
    close = get_close_matches(key[:40] or spelled(name)[:40], by_key, 6, 0.5)
    near = list(dict.fromkeys(by_key[one].name for one in close))[:4]
    raise ValueError(f"there is no chip {name!r} in the catalog; write one of {', '.join(near or known)}")


def _has(chip: Chip, memory: int) -> bool:
    """Whether the chip has that many GB of memory, in powers of two or of ten."""
    return 0.97 * memory * GB <= chip.hbm_bytes <= 1.03 * memory * GiB

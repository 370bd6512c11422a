"""The chips that explorers offer, by vendor: all chips that have the numbers that a view needs."""

from scalingbook_book.reader.explorers.controls import Choice
from scalingbook_lib.machines import chips

_OTHERS, _ANNOUNCED = "other makers", "* announced, not measured"
_GROUPS = ("Google", "NVIDIA", "AMD", _OTHERS, _ANNOUNCED)


def _chip(name: str) -> chips.Chip:
    """Return the chip with this name, or that of a machine whose name begins with it: 'Rubin × 1,024'."""
    return chips.KNOWN[max((chip for chip in chips.KNOWN if name.startswith(chip)), key=len)]


def _group(name: str) -> str:
    chip = _chip(name)
    if chip.status == "announced":
        return _ANNOUNCED
    return chip.vendor if chip.vendor in _GROUPS else _OTHERS


class Chips(Choice):
    """A choice of chips, or of machines of chips, grouped by vendor; announced ones are marked."""

    def group(self, option: str) -> str:
        """Return the vendor, or a heading for chips that are only announced."""
        return _group(option)

    def text(self, value: str) -> str:
        """Return the name, with a star if the chip is only announced, as the command line prints it."""
        chip = _chip(value)
        return value.replace(chip.name, f"{chip.name}*", 1) if chip.status == "announced" else value


def chips_with(*figures: str) -> tuple[str, ...]:
    """Return every chip that has these numbers, in group order; without arguments, all chips."""
    found = (name for name, chip in chips.KNOWN.items() if set(figures) <= chip.figures().keys())
    return tuple(sorted(found, key=lambda name: _GROUPS.index(_group(name))))


ALL_CHIPS = chips_with()  # for views of bytes alone
CHIPS_WITH_FLOPS = tuple(name for name in ALL_CHIPS if chips.KNOWN[name].rates())  # in one data type or other
CHIPS = chips_with("bf16_flops_per_s")
NETWORKED = chips_with("bf16_flops_per_s", "dcn_bytes_per_s")
SWITCHED = chips_with("bf16_flops_per_s", "dcn_bytes_per_s", "domain_chips")
POWERED = chips_with("bf16_flops_per_s", "domain_chips", "power_w")
WITH_TORUS = chips_with("bf16_flops_per_s", "torus")
WITH_VMEM = chips_with("bf16_flops_per_s", "vmem_bytes")
TORI = ("TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x")
LINKED = (*TORI, "TPU 8t")  # tori, for views of links alone: no bf16 rate of a TPU 8t is published

"""Which chips do explorers offer? All that have the figures which a view asks for, by their makers."""

from scalingbook_lib.machines import chips
from scalingbook_lib.reader.explorers.controls import Choice

_OTHERS, _ANNOUNCED = "other makers", "* announced, not measured"
_GROUPS = ("Google", "NVIDIA", "AMD", _OTHERS, _ANNOUNCED)


def _chip(name: str) -> chips.Chip:
    """Of a machine, which is named by its chip first: 'Rubin × 1,024'."""
    return chips.KNOWN[max((chip for chip in chips.KNOWN if name.startswith(chip)), key=len)]


def _group(name: str) -> str:
    chip = _chip(name)
    if chip.status == "announced":
        return _ANNOUNCED
    return chip.vendor if chip.vendor in _GROUPS else _OTHERS


class Chips(Choice):
    """Chips, or machines of them: listed by maker, and what is only announced says so beside its name."""

    def group(self, option: str) -> str:
        """Its maker, or that nobody outside could measure it."""
        return _group(option)

    def text(self, value: str) -> str:
        """The name, with a star where its chip is only announced, as the command line prints it."""
        chip = _chip(value)
        return value.replace(chip.name, f"{chip.name}*", 1) if chip.status == "announced" else value


def having(*figures: str) -> tuple[str, ...]:
    """Every chip with these figures, in the order of the groups; without any, all that there are."""
    found = (name for name, chip in chips.KNOWN.items() if set(figures) <= chip.figures().keys())
    return tuple(sorted(found, key=lambda name: _GROUPS.index(_group(name))))


EVERY = having()  # for views of bytes alone
RATED = tuple(name for name in EVERY if chips.KNOWN[name].rates())  # in one type or another
CHIPS = having("bf16_flops_per_s")
NETWORKED = having("bf16_flops_per_s", "dcn_bytes_per_s")
SWITCHED = having("bf16_flops_per_s", "dcn_bytes_per_s", "domain_chips")
POWERED = having("bf16_flops_per_s", "domain_chips", "power_w")
WITH_TORUS = having("bf16_flops_per_s", "torus")
WITH_VMEM = having("bf16_flops_per_s", "vmem_bytes")
TORI = ("TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x")
LINKED = (*TORI, "TPU 8t")  # tori for views of links alone: nobody publishes what a TPU 8t does in bf16

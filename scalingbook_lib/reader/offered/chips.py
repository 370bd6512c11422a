"""Which chips do explorers offer? The same on every control, in one order."""

from scalingbook_lib.machines import chips

CHIPS = (
    "TPU v3", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x", "A100", "H100", "H200", "B200",
    "GB300", "MI355X", "Trainium3", "Gaudi3", "MI455X", "Rubin",
)  # fmt: skip
WITH_TORUS = tuple(name for name in CHIPS if chips.KNOWN[name].torus)
WITH_VMEM = tuple(name for name in CHIPS if chips.KNOWN[name].vmem_bytes)
TORI = ("TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x")

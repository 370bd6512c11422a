"""Which numbers are worth knowing by heart? A dozen, from which the others follow."""

from collections.abc import Callable
from dataclasses import dataclass

from scalingbook_lib import models, roofline
from scalingbook_lib.chapters.conclusion.sheet.formulas import told
from scalingbook_lib.evidence import inference as served
from scalingbook_lib.evidence import training as trained
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, Told, si

_M = models.find("LLaMA-3 70B")
_NOW = (chips.V5E, chips.V5P, chips.V6E, chips.TPU7X, chips.A100, chips.H100, chips.H200, chips.B200)


@dataclass(frozen=True, kw_only=True)
class Number(Told):
    """One number, computed when it is asked for, and what it is good for."""

    name: str
    values: Callable[[], tuple[float, ...]]
    unit: str
    use: str

    def said(self) -> str:
        """The number, or the smallest and the largest of several."""
        return " to ".join(told(value, self.unit) for value in self.values())

    def __str__(self) -> str:
        return f"{self.name}: {self.said()} ({self.use})"


def _rates(chip: chips.Chip, use: str) -> tuple[Number, Number]:
    """Arithmetic and memory of one chip."""
    return (
        Number(
            name=f"C of {chip.name}", values=lambda: (chip.bf16_flops_per_s,), unit="FLOPs/s",
            use=f"bf16, dense; {use}",
        ),
        Number(
            name=f"W_hbm of {chip.name}", values=lambda: (chip.hbm_bytes_per_s,), unit="B/s",
            use=f"{si(chip.hbm_bytes, 'B')} read once take {si(chip.hbm_bytes / chip.hbm_bytes_per_s, 's')}",
        ),
    )  # fmt: skip


def _between(found: list[float]) -> tuple[float, ...]:
    return min(found), max(found)


def _links() -> tuple[float, ...]:
    return _between([chip.link_bytes_per_s for chip in _NOW if chip.torus])


def _products() -> tuple[float, ...]:
    """Of every chip that trained in bf16, as fitted to published steps."""
    return _between([100 * trained.calibrated(chip).matmul for chip in _NOW if chip is not chips.H200])


def _bands() -> tuple[float, ...]:
    dense = [trained.band(experts=False), served.band(experts=False)]
    return _between([*dense, trained.band(experts=True), served.band(experts=True)])


NUMBERS = (
    *_rates(chips.V5P, "one TPU to know"),
    *_rates(chips.H100, "one GPU to know"),
    Number(name="C / W_hbm", values=lambda: _between([roofline.ridge(chip) for chip in _NOW]), unit="FLOPs/B",
           use="tokens that meet a weight before arithmetic binds; A100 to v6e"),
    Number(name="W_1, one link of a torus", values=_links, unit="B/s",
           use="one way; twice that along a ring; 4 or 6 links to a chip"),
    Number(name="W, all links under a switch",
           values=lambda: _between([chip.links * chip.link_bytes_per_s for chip in _NOW if not chip.torus]),
           unit="B/s", use="one way; A100 to B200"),
    Number(name="network card of an H100", values=lambda: (chips.H100.dcn_bytes_per_s or 0.0,), unit="B/s",
           use="one way; a ninth of NVLink"),
    Number(name="one hop", values=lambda: (chips.V5P.hop_s,), unit="s",
           use="under a switch a whole collective: 10 to 30 µs"),
    Number(name="weights of LLaMA-3 70B", values=lambda: (arithmetic.params(_M).nbytes(BF16),), unit="B",
           use="two bytes a parameter; eight times that to train"),
    Number(name="training it on 15 trillion tokens", values=lambda: (6 * _M.params * 15e12 / 1e24,),
           unit="× 10²⁴ FLOPs",
           use="over C: 438 years of one v5p"),
    Number(name="its cache, one token", values=lambda: (arithmetic.kv_cache(_M, 1).bytes_per_token,),
           unit="B", use="a gigabyte for 3,052 tokens"),
    Number(name="share of C that products reach", values=_products, unit="%",
           use="fitted to published steps of training in bf16"),
    Number(name="band of a prediction", values=_bands, unit="times",
           use="a factor up and down: dense training to training with experts"),
)  # fmt: skip

"""Who says so? The sources that the catalogue quotes, and how a chip is put together from sourced figures."""

from typing import Any

from scalingbook_lib.machines.chip import Chip, Source

READ = "2026-11-21"
T = 1e12  # of FLOPs, OPs or bytes: the catalogue writes figures as their sources print them


def chip(name: str, vendor: str, *, full_mesh: bool = False, **figures: tuple[Any, Source]) -> Chip:
    """A chip from pairs of a figure and its source."""
    values: dict[str, Any] = {"bf16_flops_per_s": None} | {f: value for f, (value, _) in figures.items()}
    sources = {figure: source for figure, (_, source) in figures.items()}
    return Chip(name=name, vendor=vendor, full_mesh=full_mesh, sources=sources, **values)


def said(text: str, url: str = "", *, but: str = "", on: str = READ) -> Source:
    """Any source; `but` is what others print instead, `on` the day of a figure that changes, as a price."""
    return Source(text=text, as_of=on, url=url, disagreement=but)


# TPUs


def google(page: str, what: str = "", *, but: str = "") -> Source:
    """A page of Google Cloud's TPU documentation."""
    url = f"https://docs.cloud.google.com/tpu/docs/{page}"
    return said(f"Google Cloud TPU documentation, page {page}" + (f": {what}" if what else ""), url, but=but)


def jax(what: str = "", *, but: str = "") -> Source:
    """The registry inside JAX, whose figures are per TensorCore."""
    text = "registry of TPU figures in JAX 0.12 (jax/_src/tpu_info.py)" + (f": {what}" if what else "")
    return said(text, "https://github.com/jax-ml/jax", but=but)


def book(what: str, *, but: str = "") -> Source:
    """The scaling book."""
    url = "https://jax-ml.github.io/scaling-book/"
    return said(f"How to Scale Your Model (Austin et al. 2025): {what}", url, but=but)


def v4_paper(what: str, *, but: str = "") -> Source:
    """The paper on TPU v4, which compares it with v3."""
    text = f"Jouppi et al., TPU v4 (ISCA 2023), table 4: {what}"
    return said(text, "https://arxiv.org/abs/2304.01433", but=but)


def v2_paper(what: str, *, but: str = "") -> Source:
    """The paper on TPU v2 and v3, as public notes on it quote it."""
    text = f"Norrie et al., The Design Process for Google's Training Chips (2021), as quoted: {what}"
    return said(text, "https://ieeexplore.ieee.org/document/9351692", but=but)


def tpu_price() -> Source:
    """Google's price of a chip on demand, as the scaling book quotes it."""
    text = "on demand, from cloud.google.com/tpu/pricing as quoted in How to Scale Your Model, chapter 8"
    return said(
        text, "https://jax-ml.github.io/scaling-book/applied-inference/", on="2025-02-03",
        but="prices differ by region and change; commitments of one or three years cost less",
    )  # fmt: skip


# GPUs


def gpu_price(page: str, but: str) -> Source:
    """A cloud's price of one chip of a node of eight on demand, as a public table of prices quotes it."""
    text = f"on demand, from {page} as quoted in silybench-data, derived/csv/gpu_prices.csv at 045df3b"
    return said(text, "https://github.com/tgarg01/silybench-data", on="2026-09-25", but=but)


def survey(what: str = "", *, but: str = "") -> Source:
    """Tables that quote the vendors' data sheets."""
    text = "S. Bekman, Machine Learning Engineering, tables at commit 744d01e, which cite the vendor's pages"
    return said(text + (f": {what}" if what else ""), "https://github.com/stas00/ml-engineering", but=but)


def smi(mebibytes: int, printed: str, url: str, *, but: str = "") -> Source:
    """A memory whose prefix is decided by what the driver reports."""
    text = (
        f"NVIDIA's datasheet prints {printed}; nvidia-smi reports {mebibytes:,} MiB, so the prefix is binary"
    )
    return said(text, url, but=but)


def volta(what: str) -> Source:
    """The comparison table in NVIDIA's announcement of the V100, as reprinted."""
    url = "http://www.xenon.com.au/nvidia-tesla-volta-worlds-advanced-data-center-gpu/"
    return said(f"NVIDIA's comparison of Tesla accelerators, as reprinted by Xenon: {what}", url)


def verda(what: str, *, but: str = "") -> Source:
    """A cloud's comparison of B200, B300, GB200 and GB300, figure by figure."""
    return said(
        f"Verda, GB300 NVL72 architecture: {what}", "https://verda.com/blog/gb300-nvl72-architecture", but=but
    )


def rocm(what: str, *, but: str = "") -> Source:
    """AMD's table of its chips' units and memories."""
    url = "https://rocm.docs.amd.com/en/latest/reference/gpu-specs.html"
    return said(f"AMD GPU specifications, ROCm documentation: {what}", url, but=but)

"""The formulas worth knowing by heart, with the assumptions of each and an example.

Each example is computed by the library and by hand, so everything that the sheet prints is tested.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, floor, sqrt

from scalingbook_lib import collectives, models, roofline, rules, training
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.machines.formats import NVFP4
from scalingbook_lib.models import arithmetic
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training import reliability
from scalingbook_lib.units import FP8, Result, percent, si

_M = models.find("Llama 3 70B")
_V5P, _H100 = chips.V5P, chips.H100
_C, _W = _V5P.bf16_flops_per_s, _V5P.hbm_bytes_per_s
_ICI = 2 * _V5P.link_bytes_per_s  # W_ici: both links of one axis
_NODE = Cluster.of(_H100, 8)
_NVLINK = _H100.links * _H100.link_bytes_per_s
_TOKENS = 15e12


@dataclass(frozen=True, kw_only=True)
class Formula(Result):
    """One line of the sheet; `value` computes the case with the library, `by_hand` with the formula."""

    question: str
    formula: str
    tex: str  # the same formula, for KaTeX and MathJax
    holds: str
    case: str
    value: Callable[[], float]
    by_hand: Callable[[], float]
    unit: str = ""

    def said(self) -> str:
        """The worked example, as the sheet prints it."""
        return f"{self.case}: {told(self.value(), self.unit)}"

    def __str__(self) -> str:
        return f"{self.question}: {self.formula} ({self.holds}). {self.said()}"


def told(value: float, unit: str) -> str:
    """A number for the sheet: a fraction in percent, an upper limit rounded down, others with a prefix."""
    if unit == "%":
        return percent(value / 100)
    if unit in ("limit", "degree"):
        return f"{floor(value) if unit == 'limit' else round(value):,}"
    return f"{value:,.0f} {unit}" if unit == "columns" else si(value, unit)


def _gather(n: int) -> float:
    return collectives.all_gather(1e9, _V5P.axis(n, wrapped=True)).bandwidth_s


FORMULAS = (
    Formula(
        question="time of a matmul", formula="max(FLOPs / C, bytes / W_hbm)",
        tex=r"\max\left(\text{FLOPs}/C,\ \text{bytes}/W_\text{hbm}\right)", unit="s",
        holds="with perfect overlap; without overlap, the sum",
        case="X[64, 8192] · W[8192, 8192] on v5p",
        value=lambda: roofline.matmul(64, 8192, 8192, _V5P).lower_s,
        by_hand=lambda: max(2 * 64 * 8192**2 / _C, 2 * (2 * 64 * 8192 + 8192**2) / _W),
    ),
    Formula(
        question="critical batch size of a matmul", formula="B = R / (1 − R (1/D + 1/F)), R = C / W_hbm",
        tex=r"B = \dfrac{R}{1 - R\,(1/D + 1/F)},\ R = C/W_\text{hbm}",
        unit="tokens", holds="bf16; about R for wide layers",
        case="D = F = 8,192 on v5p", value=lambda: rules.matmul_critical_batch(8192, 8192, _V5P),
        by_hand=lambda: _C / _W / (1 - _C / _W * 2 / 8192),
    ),
    Formula(
        question="AllGather on a ring", formula="M (1 − 1/n) / W_ici + n/2 hops",
        tex=r"M\,(1 - 1/n)/W_\text{ici} + n/2\ \text{hops}", unit="s",
        holds="W_ici = 2 W_1; on a line, W_1 and n − 1 hops; ReduceScatter: the same; AllReduce: twice",
        case="1 GB on 16 v5p, without hops", value=lambda: _gather(16), by_hand=lambda: 1e9 * 15 / 16 / _ICI,
    ),
    Formula(
        question="AllToAll on a ring", formula="M / (4 W_ici)",
        tex=r"M/(4\,W_\text{ici})", unit="s",
        holds="M is the whole array; n even", case="1 GB on 16 v5p, without hops",
        value=lambda: collectives.all_to_all(1e9, _V5P.axis(16, wrapped=True)).bandwidth_s,
        by_hand=lambda: 1e9 / 4 / _ICI,
    ),
    Formula(
        question="collectives under one switch",
        formula="AllGather M (1 − 1/n) / W; AllToAll: the same, divided by n",
        tex=r"\text{AllGather}\ M\,(1 - 1/n)/W,\ \text{AllToAll: the same, divided by}\ n", unit="s",
        holds="W counts all links of one GPU, one direction", case="AllToAll of 1 GB on 8 H100s",
        value=lambda: collectives.all_to_all(1e9, *_NODE.levels).bandwidth_s,
        by_hand=lambda: 1e9 * 7 / 64 / _NVLINK,
    ),
    Formula(
        question="FLOPs of training", formula="6 P per token",
        tex=r"6P\ \text{per token}", unit="FLOPs",
        holds="short sequences, where the attention scores cost little; MoE: P counts active parameters",
        case="Llama 3 70B, one token", value=lambda: arithmetic.training_flops(_M, 1, 4096).six_nd,
        by_hand=lambda: 6 * _M.params,
    ),
    Formula(
        question="time of a training run", formula="6 P · tokens / (n C · MFU)",
        tex=r"\dfrac{6P \cdot \text{tokens}}{nC \cdot \text{MFU}}", unit="days",
        holds="no failures", case="Llama 3 70B, 15 trillion tokens, 8,960 v5p, 40% MFU",
        value=lambda: training.run_at(_M, Slice.of(_V5P, "16x20x28"), _TOKENS, mfu=0.4).days,
        by_hand=lambda: 6 * _M.params * _TOKENS / (8960 * _C * 0.4) / 86400,
    ),
    Formula(
        question="bytes per element of a block format", formula="(bits + s / q) / 8 bytes",
        tex=r"(\text{bits} + s/q)/8\ \text{bytes}", unit="B",
        holds="q elements share a scale of s bits", case="NVFP4: 4 bits, 8 per 16 elements",
        value=lambda: NVFP4.bytes, by_hand=lambda: (4 + 8 / 16) / 8,
    ),
    Formula(
        question="training state", formula="16 P bytes",
        tex=r"16P\ \text{bytes}", unit="B",
        holds="Adam: 4 bytes for bf16 weights and gradients, 8 for fp32 moments, 4 for fp32 weights",
        case="Llama 3 70B", value=lambda: arithmetic.training_state(_M).total,
        by_hand=lambda: 16 * _M.params,
    ),
    Formula(
        question="data parallelism is hidden above", formula="C / (n_ax W_ici) tokens per chip",
        tex=r"C/(n_\text{ax} W_\text{ici})\ \text{tokens per chip}", unit="tokens",
        holds="with FSDP, count the tokens of one microbatch",
        case="v5p, three axes", value=lambda: rules.data_parallel_tokens(_V5P, axes=3),
        by_hand=lambda: _C / (3 * _ICI),
    ),
    Formula(
        question="tensor parallelism is hidden up to a degree of", formula="n_ax F W_ici / C",
        tex=r"n_\text{ax} F\,W_\text{ici}/C", unit="limit",
        holds="whole axes; collectives overlap", case="Llama 3 70B on v5p, one axis",
        value=lambda: rules.tensor_parallel_degree(_M.F, _V5P), by_hand=lambda: _M.F * _ICI / _C,
    ),
    Formula(
        question="best FSDP degree with TP", formula="X = √(B n n_X / (F n_Y))",
        tex=r"X = \sqrt{B\,n\,n_X/(F\,n_Y)}", unit="degree",
        holds="round to a divisor of n, here to 1,024",
        case="Llama 3 70B, 2²² tokens, 4,096 v5p, n_X = 2 n_Y",
        value=lambda: rules.best_fsdp_degree(2**22, 4096, _M.F),
        by_hand=lambda: sqrt(2**22 / _M.F * 2 * 4096),
    ),
    Formula(
        question="experts hide their AllToAlls above a width of", formula="F = C / (2 W)",
        tex=r"F = C/(2W)", unit="columns",
        holds="gated experts; dispatch in fp8, combine in bf16, both under one switch", case="GB300 in fp8",
        value=lambda: rules.ChipRatios(chips.GB300, FP8).expert_width, by_hand=lambda: 5e15 / (2 * 18 * 50e9),
    ),
    Formula(
        question="bubble of a pipeline", formula="(p − 1) / (m + p − 1)",
        tex=r"(p - 1)/(m + p - 1)", unit="%",
        holds="GPipe and 1F1B, equal stages", case="16 stages, 64 microbatches",
        value=lambda: 100 * float(pipelines.bubble("1f1b", 16, 64).share),
        by_hand=lambda: 100 * 15 / 79,
    ),
    Formula(
        question="KV cache of one token", formula="2 L K H a bytes",
        tex=r"2LKHa\ \text{bytes}", unit="B",
        holds="every layer keeps all tokens; no latent attention", case="Llama 3 70B in bf16",
        value=lambda: arithmetic.kv_cache(_M, 4096).bytes_per_token,
        by_hand=lambda: 2 * _M.L * _M.K * _M.H * 2,
    ),
    Formula(
        question="linear attention, prefill, per token per head", formula="4 d² + 4 c d FLOPs",
        tex=r"4d^2 + 4cd\ \text{FLOPs}", unit="FLOPs",
        holds="full chunks, no delta rule; full attention takes 4 S d per token that attends to S tokens",
        case="d = 128, chunks of c = 64",
        value=lambda: arithmetic.RecurrentState(heads=1, key=128, value=128).chunk_flops(64),
        by_hand=lambda: 4 * 128**2 + 4 * 64 * 128,
    ),
    Formula(
        question="critical batch size of decode", formula="w C / (2 W_hbm)",
        tex=r"wC/(2\,W_\text{hbm})", unit="tokens",
        holds="wide layers; for experts, multiply by E/k", case="bf16 on H100",
        value=lambda: rules.critical_batch(_H100).tokens,
        by_hand=lambda: _H100.bf16_flops_per_s / _H100.hbm_bytes_per_s,
    ),
    Formula(
        question="decode step", formula="B M_kv / (n W_hbm) + max(w P / (n W_hbm), 2 B P / (n C))",
        tex=r"\frac{B M_\text{kv}}{n W_\text{hbm}} + \max(\frac{wP}{n W_\text{hbm}}, \frac{2BP}{nC})",
        unit="s", holds="no communication, no launches",
        case="Llama 3 70B in bf16, 8 v5p, 32 sequences of 8,192",
        value=lambda: rules.decode_step(
            _M.params, _V5P, 8, batch=32, cache_bytes=arithmetic.kv_cache(_M, 8192).nbytes
        ).total_s,
        by_hand=lambda: (32 * 4 * _M.L * _M.K * _M.H * 8192 + 2 * _M.params) / (8 * _W),
    ),
    Formula(
        question="time between checkpoints", formula="√(2 t_save t_fail)",
        tex=r"\sqrt{2\,t_\text{save}\,t_\text{fail}}", unit="s",
        holds="Young's rule; t_save far below t_fail", case="30 s, a failure every 3 hours",
        value=lambda: rules.goodput(30, 3 * 3600, 0).best_s, by_hand=lambda: sqrt(2 * 30 * 3 * 3600),
    ),
    Formula(
        question="goodput left by restarts", formula="e^(-t_restart / t_fail)",
        tex=r"e^{-t_\text{restart}/t_\text{fail}}", unit="%",
        holds="counts restarts only, not checkpoints or repeated work",
        case="600 s, a failure every 30 minutes",
        value=lambda: 100 * reliability.restart_bound(1800, 600),
        by_hand=lambda: 100 * exp(-600 / 1800),
    ),
)  # fmt: skip

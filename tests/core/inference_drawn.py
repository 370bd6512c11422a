"""Models on machines in layouts, drawn at random, with how well they do."""

import pytest

from scalingbook_lib import inference, models
from scalingbook_lib.inference import Layout, LayoutError, ServingEfficiency, by_type
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.units import BF16, INT4, INT8
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SETTINGS = repeatable.examples(80)
_NAMES = ("Llama 3 8B", "Llama 3 70B", "Gemma-3 27B", "GPT-2 XL", "Mixtral 8x7B", "DeepSeek-V3",
          "gpt-oss 120B", "Qwen3-Next 80B-A3B", "Falcon 40B")  # fmt: skip
MODELS = [models.find(name) for name in _NAMES]
MACHINES = [
    Cluster.of(chips.H100, 8), Cluster.of(chips.GB200, 72), Cluster.of(chips.H200, 64),
    Slice.of(chips.V5E, "4x4"), Slice.of(chips.V5P, "4x4x4"), Slice.of(chips.V6E, "16x16"),
]  # fmt: skip
POWERS = [1, 2, 4, 8, 16, 32, 64]
SIZES = st.integers(1, 2000)
CONTEXTS = st.integers(1, 100_000)
ROUGH = ServingEfficiency(
    matmul=by_type(0.8, int8=0.7), weights=by_type(0.9, int8=0.7), kv=0.8, attention=0.6, experts=0.5,
    memory=0.7, torus=0.8, domain=0.7, network=0.6, overlap=0.3, apart=0.2, dequantize_s=1e-13, layer_s=3e-6,
    expert_layer_s=5e-6, collective_s=4e-6, fixed_s=1e-3, sequence_s=3e-6, host_s=2e-5,
)  # fmt: skip
EFFICIENCIES = [inference.PEAK, ROUGH, ServingEfficiency(overlap=1.0)]


@st.composite
def layouts(draw, chips_there):
    """Any division of a number of chips."""
    tp = draw(st.sampled_from([n for n in POWERS if chips_there % n == 0]))
    cp = draw(st.sampled_from([n for n in (1, 2, 4) if chips_there % (n * tp) == 0]))
    pp = draw(st.sampled_from([n for n in (1, 2, 4) if chips_there % (n * cp * tp) == 0]))
    below = [n for n in POWERS if tp % n == 0]
    groups = draw(st.sampled_from(below))
    rows = draw(st.sampled_from(below)) if groups == 1 else 1
    ep = draw(st.sampled_from(below)) if rows == 1 else 1
    left = tp // groups
    kv_batch = draw(st.sampled_from([n for n in POWERS if left % n == 0]))
    kv_sequence = draw(st.sampled_from([n for n in POWERS if (left // kv_batch) % n == 0]))
    return Layout(
        tp=tp, cp=cp, pp=pp, rows=rows, ep=ep, attention_dp=groups, kv_batch=kv_batch,
        kv_sequence=kv_sequence, weights=draw(st.sampled_from((BF16, INT8, INT4))),
        kv=draw(st.sampled_from((BF16, INT8))),
    )  # fmt: skip


@st.composite
def cases(draw, which=MODELS, efficiencies=EFFICIENCIES):
    """A model on a machine in a layout that can be."""
    model, machine = draw(st.sampled_from(which)), draw(st.sampled_from(MACHINES))
    layout, efficiency = draw(layouts(machine.chips)), draw(st.sampled_from(efficiencies))
    try:
        inference.case(model, machine, layout, efficiency)
    except LayoutError:
        hypothesis.assume(False)
    return model, machine, layout, efficiency


def decode(case, B, S, **more):
    model, machine, layout, efficiency = case
    return inference.decode(model, machine, layout, batch=B, S=S, efficiency=efficiency, **more)

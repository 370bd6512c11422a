"""The list of compiled programs: structures, plans and chips, from 1 to 4,096 chips.

Training programs are steps in the style of other projects, partitioned by XLA, and the laboratory's trainer,
which has explicit collectives. Serving programs are any structure under tensor parallelism, and the
laboratory's engine under other plans.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import jax.numpy as jnp

from scalingbook_lab.serve.layout import Config
from scalingbook_lab.train.trainer import Trainer
from scalingbook_lib import models
from tools.compiled.case import Case
from tools.compiled.others import Style
from tools.compiled.served import Engine, Reading
from tools.compiled.serving import Serving, cut
from tools.compiled.trained import Lab, Step

# A step in another project's style: its name, its topology, and the fields that differ from the defaults of
# `Style`. Attention runs in blocks of queries unless its scores are materialized ("plain"), and everything is
# rematerialized unless stated otherwise.
USUAL: dict[str, Any] = {"attn": "chunk", "remat": "full"}
STEPS = (
    ("one chip, materialized scores", "v5e:1x1",
     {"D": 1024, "N": 8, "F": 4096, "attn": "plain", "remat": "none"}),
    ("one chip, full checkpointing", "v6e:1x1", {"D": 1024, "N": 8, "F": 4096}),
    ("one TPU7x chip, FSDP over its two devices", "tpu7x:1x1x1", {"fsdp": 2, "seqs": 2}),
    ("DP", "v5e:2x2", {"dp": 4, "D": 1024, "N": 8, "F": 4096, "remat": "none"}),
    ("DP, tied embeddings, no gate", "v4:2x2x1",
     {"dp": 4, "D": 1024, "N": 8, "tied": True, "gated": False, "remat": "none"}),
    ("FSDP", "v5e:2x4", {"fsdp": 8, "seqs": 2, "remat": "none"}),
    ("FSDP, materialized scores", "v5e:2x4", {"fsdp": 8, "seqs": 2, "attn": "plain"}),
    ("FSDP, full checkpointing", "v4:2x2x2", {"fsdp": 8, "seqs": 2}),
    ("FSDP, matmul outputs saved", "v5p:2x2x2", {"fsdp": 8, "seqs": 2, "remat": "dots_no_batch"}),
    ("FSDP, unrolled layers", "v5p:2x2x2", {"fsdp": 8, "seqs": 2, "scan": False}),
    ("FSDP, 4 microbatches", "v6e:2x4", {"fsdp": 8, "seqs": 1, "accum": 4}),
    ("FSDP, tied embeddings", "v6e:2x4", {"fsdp": 8, "seqs": 2, "tied": True}),
    ("FSDP, MHA, no gate", "v5e:2x4", {"fsdp": 8, "seqs": 2, "K": 16, "gated": False}),
    ("FSDP, MQA", "v5e:2x4", {"fsdp": 8, "seqs": 2, "K": 1}),
    ("FSDP, bf16 optimizer state", "v5e:4x4", {"fsdp": 16, "seqs": 1, "opt": "bf16"}),
    ("FSDP, bf16 weights with an fp32 master", "v6e:4x4", {"fsdp": 16, "seqs": 1, "opt": "master"}),
    ("FSDP on TPU7x", "tpu7x:2x2x1", {"fsdp": 8, "seqs": 2}),
    ("HSDP", "v5e:4x4", {"dp": 4, "fsdp": 4, "seqs": 2}),
    ("TP", "v5e:2x4", {"tp": 8}),
    ("TP and sequence parallelism", "v5e:2x4", {"tp": 8, "sp": True}),
    ("TP on TPU7x", "tpu7x:2x2x1", {"tp": 8}),
    ("FSDP and TP", "v5p:2x2x2", {"fsdp": 4, "tp": 2}),
    ("FSDP, TP and sequence parallelism", "v5p:2x2x4", {"fsdp": 4, "tp": 4, "sp": True}),
    ("FSDP and TP, 405B's layers", "v6e:8x8",
     {"fsdp": 8, "tp": 8, "D": 16384, "N": 128, "F": 53248, "V": 128256, "seqs": 1}),
    ("MoE, FSDP without EP", "v5e:2x4", {"fsdp": 8, "seqs": 2, "E": 8, "F": 2048}),
    ("MoE, EP over the FSDP axis", "v5p:2x2x2", {"fsdp": 8, "ep": 8, "E": 8, "F": 2048}),
    ("MoE, EP, tied embeddings", "v6e:4x4", {"fsdp": 16, "ep": 16, "E": 16, "k": 1, "F": 2048, "tied": True}),
    ("64 chips, FSDP", "v5p:4x4x4", {"fsdp": 64, "seqs": 1}),
    ("64 chips, HSDP and TP", "v4:4x4x4", {"dp": 4, "fsdp": 4, "tp": 4}),
    ("256 chips, FSDP", "v5e:16x16", {"fsdp": 256, "seqs": 1, "D": 4096, "N": 32, "F": 14336}),
    ("256 chips, FSDP and TP", "v6e:16x16",
     {"fsdp": 16, "tp": 16, "K": 16, "D": 4096, "N": 32, "F": 14336}),
    ("256 chips, FSDP, TP and sequence parallelism", "v5p:4x8x8",
     {"fsdp": 32, "tp": 8, "sp": True, "D": 8192, "N": 64, "F": 28672, "V": 128256, "seqs": 1}),
    ("512 chips, FSDP and TP", "v4:8x8x8",
     {"fsdp": 64, "tp": 8, "D": 8192, "N": 64, "F": 28672, "seqs": 1}),
    ("1,024 chips, FSDP", "v5p:8x8x16", {"fsdp": 1024, "seqs": 1, "D": 8192, "N": 64, "F": 28672}),
    ("1,024 chips, HSDP", "v5p:8x8x16",
     {"dp": 8, "fsdp": 128, "seqs": 1, "D": 8192, "N": 64, "F": 28672}),
    ("4,096 chips, FSDP and TP", "v5p:16x16x16",
     {"fsdp": 256, "tp": 16, "K": 16, "D": 16384, "N": 128, "F": 53248, "V": 128256, "seqs": 1}),
    ("4,096 chips, DP, FSDP and TP", "v5p:16x16x16",
     {"dp": 16, "fsdp": 16, "tp": 16, "K": 16, "D": 8192, "N": 64, "F": 28672}),
)  # fmt: skip

MIDDLE = models.Transformer(name="middle", D=1024, L=4, V=16384, N=16, K=8, H=128, F=4096)
ROUTED = replace(MIDDLE, name="middle, experts", experts=models.Experts(E=8, k=2, F=1024))

# The laboratory's trainer, with explicit collectives: name, topology, mesh, microbatches, kind of context
# parallelism.
LABS = (
    ("ring attention", "v5e:2x4", {"C": 8}, 1, "ring"),
    ("Ulysses", "v5p:2x2x2", {"C": 4, "R": 2}, 1, "ulysses"),
    ("four pipeline stages", "v6e:2x4", {"P": 4, "R": 2}, 4, "ring"),
    ("PP, DP and TP", "v5p:2x2x2", {"P": 2, "R": 2, "Y": 2}, 4, "ring"),
    ("FSDP, CP and TP", "v4:2x2x2", {"X": 2, "C": 2, "Y": 2}, 1, "ring"),
    ("EP over four chips", "v5e:2x4", {"Z": 4, "R": 2}, 1, "ring"),
    ("EP, FSDP and TP", "v5p:2x2x2", {"Z": 2, "X": 2, "Y": 2}, 1, "ring"),
    ("FSDP", "v6e:2x4", {"X": 8}, 1, "ring"),
)

STAGED, SEED = 6, 29  # number of further meshes with pipeline stages, drawn at random


def _staged() -> Iterator[tuple[str, str, dict[str, int], int, str]]:
    """Yield random cases like LABS: two or four pipeline stages on eight devices, with other parallelism."""
    r, slices = random.Random(SEED), ("v5e:2x4", "v6e:2x4", "v5p:2x2x2", "v4:2x2x2", "tpu7x:2x2x1")
    found = set[str]()
    while len(found) < STAGED:
        stages = r.choice((2, 4))
        mesh = {"P": stages}
        for _ in range(1 if stages == 4 else 2):  # the rest of the eight devices, in factors of two
            axis = r.choice("RXZCY")
            mesh[axis] = 2 * mesh.get(axis, 1)
        many, context = r.choice((2, 4, 8)), r.choice(("ring", "ulysses"))
        how = f", {context}" if "C" in mesh else ""
        topology = r.choice([name for name in slices if len(mesh) == 2 or name.count("x") == 2])
        name = f"{' '.join(f'{axis}{n}' for axis, n in mesh.items())}, {many} microbatches{how}"
        if name not in found:
            found.add(name)
            yield name, topology, mesh, many, context


# Prefill and decode: model, topology, TP degree, and for a windowed model the window's tokens. Each gives
# both phases.
SERVED = (
    ("Llama 3 8B", "v5e:1x1", 1),
    ("Llama 3 8B", "v5e:2x4", 8),
    ("Llama 3 70B", "v5p:2x2x2", 8),
    ("Llama 3 70B", "v5p:2x2x4", 16),
    ("Llama 2 7B", "v4:2x2x2", 8),
    ("Gemma 2B", "v6e:2x4", 8),
    ("Gemma-2 9B", "v5e:2x4", 8),
    ("Mixtral 8x7B", "v6e:2x4", 8),
    ("Qwen3 235B-A22B", "v6e:4x4", 16),
    ("DeepSeek-V2-Lite", "v5p:2x2x2", 8),
    ("DeepSeek-V3", "v5p:2x4x4", 32),
    ("GPT-2 XL", "v4:1x1x1", 1),
    ("Falcon 7B", "v5p:1x1x1", 1),
    ("Falcon 40B", "tpu7x:2x2x1", 8),
    ("OPT 6.7B", "tpu7x:1x1x1", 2),
)

# The laboratory's engine on layers of the 70B model: what shards the cache, topology, mesh, new tokens per
# sequence.
ENGINES = (
    ("KV cache by heads", "v5e:2x4", {"Y": 8}, 1),
    ("KV cache by heads and sequences", "v5e:2x4", {"Z": 2, "Y": 4}, 1),
    ("KV cache by heads and tokens", "v5p:2x2x2", {"C": 2, "Y": 4}, 1),
    ("2D weight sharding", "v6e:2x4", {"X": 2, "Y": 4}, 1),
    ("data-parallel attention groups", "v4:2x2x2", {"A": 2, "Y": 4}, 1),
    ("TP above the number of KV heads", "v5e:4x4", {"Z": 4, "Y": 4}, 1),
    ("64 chips", "v5p:4x4x4", {"Z": 16, "Y": 4}, 1),
    ("chunk of 128 tokens", "v5e:2x4", {"Y": 8}, 128),
    ("chunk, KV cache by heads and sequences", "tpu7x:2x2x1", {"Z": 2, "Y": 4}, 128),
)


def _steps() -> Iterator[Case]:
    for name, topology, knobs in STEPS:
        how: dict[str, Any] = USUAL | {"name": name, "topo": topology} | knobs
        yield Step(name=f"train: {name}", topology=topology, style=Style(**how))


def _labs() -> Iterator[Case]:
    for name, topology, mesh, microbatches, context in (*LABS, *_staged()):
        model = ROUTED if "Z" in mesh else MIDDLE
        trainer = Trainer(
            model, mesh, batch=16, T=1024, microbatches=microbatches, context=context, dtype=jnp.float32,
            topology=topology,
        )  # fmt: skip
        yield Lab(name=f"train explicitly: {name}", topology=topology, trainer=trainer)


def _served() -> Iterator[Case]:
    for name, topology, tp in SERVED:
        model = cut(models.find(name), window=256)
        e = model.experts
        for phase, B, T, S in (("prefill", 1, 1024, 1024), ("decode", 4 * (e.E if e else 8), 1, 2048)):
            program = Serving(model=model, topology=topology, tp=tp, B=B, T=T, S=S)
            yield Reading(name=f"{phase}: {name} over {tp}", topology=topology, program=program)


def _engines() -> Iterator[Case]:
    layers = replace(models.find("Llama 3 70B"), L=2)
    kinds: dict[str, Any] = {"dtype": jnp.bfloat16, "cache_dtype": jnp.bfloat16}
    for name, topology, mesh, T in ENGINES:
        config = Config(layers, mesh, sequences=32, tokens=2048, topology=topology, **kinds)
        yield Engine(
            name=f"{'prefill' if T > 1 else 'decode'}: {name}", topology=topology, config=config, T=T
        )


@cache
def cases() -> dict[str, Case]:
    """Return all programs by name."""
    return {case.name: case for kind in (_steps, _labs, _served, _engines) for case in kind()}

"""The layers that the chapter compares: published shapes, as stacks of mixers.

Sources: Kimi K3 arXiv 2607.24653; DeepSeek-V3.2 arXiv 2512.02556, and V4's report of 2026-04; NSA arXiv
2502.11089, section 4.1; MoBA arXiv 2502.13189; SigLIP in Gemma 3 arXiv 2503.19786; Wan arXiv 2503.20314, its
configurations as ml-explore/mlx-examples a36538b keeps them. Read 2026-11-22 and 2026-11-27.
"""

from dataclasses import dataclass

from scalingbook_lib import models
from scalingbook_lib.models.arithmetic.layers import pair_flops
from scalingbook_lib.models.arithmetic.mixers import Entries, MixedLayers, Mixer, RecurrentState, stack
from scalingbook_lib.units import BF16

MILLION = 2**20
V3, QWEN = models.find("DeepSeek-V3"), models.find("Qwen3-Next 80B-A3B")
LLAMA = models.find("Llama 3 70B")
_PAIR = pair_flops(V3, absorbed=True)  # 128 heads that meet a latent vector of 512 + 64

# a latent vector: 512 in fp8, four scales in fp32, 64 in bf16; an index key of 128 in fp8 with a scale
DSA = Entries(
    pair_flops=_PAIR, nbytes=512 + 16 + 128, chosen=2048, index_flops=2 * 64 * 128, index_bytes=128 + 4
)
DENSE = Entries(pair_flops=_PAIR, nbytes=DSA.nbytes)  # the same layer without its index
# V4's entry is key and value in one: 448 in fp8, 64 in bf16; the index has FP4 keys of 128
_V4 = Entries(pair_flops=2 * 128 * (512 + 512), nbytes=448 + 128)
RAW = Entries(pair_flops=_V4.pair_flops, nbytes=_V4.nbytes, window=128)
CHOOSES = Entries(
    pair_flops=_V4.pair_flops,
    nbytes=_V4.nbytes,
    every=4,
    chosen=1024,
    index_flops=2 * 64 * 128,
    index_bytes=64,
)
CSA: Mixer = (CHOOSES, RAW)
HCA: Mixer = (Entries(pair_flops=_V4.pair_flops, nbytes=_V4.nbytes, every=128), RAW)
MLA = Entries(pair_flops=_PAIR, nbytes=2 * (512 + 64))
GQA = Entries(pair_flops=pair_flops(LLAMA), nbytes=2 * 2 * 8 * 128)
KDA = RecurrentState(heads=96, key=128, value=128, erases=True, dtype=BF16)  # of K3

K3 = MixedLayers("Kimi K3", ((69, (KDA,)), (24, (MLA,))))
V3_2 = MixedLayers("DeepSeek-V3.2", ((V3.L, (DSA,)),))
V4 = MixedLayers("DeepSeek-V4-Pro", ((30, CSA), (31, HCA)))  # 59 in turn after two of the second kind
STACKS = (stack(LLAMA), stack(V3), V3_2, K3, stack(QWEN), V4)
V4_ACTIVE = 49e9

# tokens that a query meets, in units of one token's keys and values: 5,632 of 65,536
NSA: Mixer = (
    Entries(pair_flops=1, nbytes=1, every=16),  # blocks of 32 that overlap by half
    Entries(pair_flops=1, nbytes=1, window=16 * 64 + 512),  # 16 blocks of 64, and a window
)
MOBA = 12 * 4096  # tokens that a query meets, of a million


@dataclass(frozen=True, kw_only=True, slots=True)
class BidirectionalNetwork:
    """A network whose tokens all attend to one another: a vision encoder or a video model."""

    params: float
    D: int
    L: int


SIGLIP = BidirectionalNetwork(params=0.417e9, D=1152, L=27)
WAN = BidirectionalNetwork(params=14e9, D=5120, L=40)
LAYERS: dict[str, Mixer] = {
    "GQA (8 heads)": (GQA,),
    "MLA": (MLA,),
    "MLA (8 bits)": (DENSE,),
    "window of 1,024": (Entries(pair_flops=GQA.pair_flops, nbytes=GQA.nbytes, window=1024),),
    "DSA (top 2,048)": (DSA,),
    "CSA (4:1, top 1,024)": CSA,
    "HCA (128:1)": HCA,
    "KDA states": (KDA,),
}


# DeepSeek-V4-Pro's config.json, without what does not change a count; published 2026-04-24
V4_PRO_CONFIG = {
    "model_type": "deepseek_v4",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "vocab_size": 129280,
    "num_attention_heads": 128,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "q_lora_rank": 1536,
    "o_lora_rank": 1024,
    "o_groups": 16,
    "qk_rope_head_dim": 64,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 1024,
    "sliding_window": 128,
    "compress_ratios": [128, 128, *[4, 128] * 29, 4, 0],
    "n_routed_experts": 384,
    "num_experts_per_tok": 6,
    "n_shared_experts": 1,
    "moe_intermediate_size": 3072,
    "num_hash_layers": 3,
    "hc_mult": 4,
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
    "expert_dtype": "fp4",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
V4_PRO = models.from_hf(V4_PRO_CONFIG, name="DeepSeek-V4-Pro")

"""Parts of a configuration that this library does not count, and the fields that reveal them."""

import re

OTHERS = {
    "zamba": "a Transformer block whose weights several layers share",
    "mamba|plamo2": "state-space layers (Mamba) under field names of its own",
    "rwkv|xlstm": "layers of linear recurrence (RWKV-5 and later, xLSTM)",
    "griffin": "recurrent layers (RG-LRU) under field names of its own",
    "jetmoe": "experts in its attention",
    "doge": "a key-value memory instead of experts",
    "hrm_|dory|inkling2_loop": "layers that run several times (a recurrent depth)",
    "inkling": "short convolutions next to every sublayer and learned relative positions",
    "zaya": "attention over convolved queries and keys",
    "diffllama": "attention as the difference of two maps",
    "axk2": "gated norms",
    "idefics$": "layers that attend to pictures",
    r"(\w+_)?(t5|bart|bert|roberta|electra)|whisper|albert|camembert|data2vec|deberta|ernie$|ernie_m|big_?bird|"
    r"roformer|rembert|roc_bert|xlm|xmod|modernbert$|megatron.bert|eurobert|blip|git$|pegasus|m2m_100|"
    r"marian|prophetnet|blenderbot": "an encoder, or attention without a mask",
    "clip|siglip|vit": "pictures for tokens",
}
"""By a prefix of `model_type`, the part that such models have and this library does not count."""
UNCOUNTED = {
    "num_mtp_modules": "modules that predict a token more",
    "vision_config": "the part that sees pictures",
    "audio_config": "the part that hears",
    "thinker_config": "the parts that see and hear",
    "talker_config": "the part that speaks",
}
"""By configuration field, the part besides the language model that is listed and not counted."""
PARTS = re.compile(
    r"(moe_)?(num|n)_(local_|routed_|shared_)?experts|num_experts_per_tok|\w+_nextn_predict_layers|"
    r"(moe|shared_expert)_intermediate_size|(q|kv)_lora_rank|(linear|index|mamba|ssm|attn_layer)_\w+|"
    r"state_size|(layer|attn)_types?(_list)?|(layers?_)?block_types?|layers_block_type|hybrid_\w+_pattern|"
    r"full_attention_interval|sparse_attention_config|(add_)?cross_attention(_layers)?|num_kv_shared_layers|"
    r"(attention|attn|mlp|qkv|use)_bias|(use_)?qk_(layer)?norm|"  # what changes parameters as parts do
    r"altup_num_inputs|laurel_rank|\w+_per_layer_input|o_lora_rank|hc_mult|\w*latent_size|v_head_dim|swa_num\w+|"
    r"swa_\w*head_dim|global_head_dim|num_global_key_value_heads|attention_k_eq_v|kv_source_layers|compress_\w+|"
    r"attn_output_gate|per_layer_config|zero_expert_num|moe_layer_\w+|mlp_layer_types|mlp_only_layers|"
    r"decoder_sparse_step|sliding_window|use_sliding_window|attn_res_block_size|mla_use_output_gate|"
    r"routed_expert_hidden_size|ngram_\w+|emb_\w+_num|oe_\w+|block_configs|(num|n)_shared_experts?|moe_(num_shared_experts|k|topk)|num_experts_per_token|"
    r"share_expert_dim|use_double_wide_mlp|enable_moe_block|num_sliding_attention_heads|attention_sink\w*"
)
"""The fields that state which parts a layer has."""
NO_SIZES = re.compile(
    r"mamba_(chunk_size|hidden_act|norm_before_gate)|linear_(attn_(alpha|beta)_factor|a_log_\w+|dt_\w+|allow_\w+|"
    r"lower_bound)|index_(kpool_always_select_tail|share_for_mtp_iteration|local_blocks)|ssm_\w*multipliers?|"
    r"compress_rope_theta"
)
"""Fields named like parts that change neither bytes nor matmul FLOPs."""

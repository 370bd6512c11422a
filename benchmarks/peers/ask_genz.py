"""Ask GenZ about serving; it computes a roofline of every operator, at peak rates unless told otherwise."""

from answering import main, served
from GenZ import decode_moddeling, prefill_moddeling
from GenZ.Models.default_models import ModelConfig

BITS = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "int8": "int8", "nvfp4": "fp4"}


def serving(one: dict) -> float:
    """Return tokens per second of prompts, then steps of one batch, at the chip's documented rates."""
    m, c = one["model"], one["chip"]
    experts = (
        {"num_experts": m["E"], "expert_top_k": m["k"], "moe_intermediate_size": m["F"]} if m["E"] > 1 else {}
    )
    model = ModelConfig(
        model=m["name"], vocab_size=m["V"], hidden_size=m["D"], intermediate_size=m["F"],
        num_ffi=1 + m["gated"], num_decoder_layers=m["L"], num_attention_heads=m["N"], head_dim=m["H"],
        num_key_value_heads=m["K"], **experts,
    )  # fmt: skip
    system = {
        "Flops": c["bf16"] / 1e12,
        "Memory_size": 1e6,
        "Memory_BW": c["hbm"] / 1e9,
        "ICN": c["link"] / 1e9,
    }
    asked = {
        "model": model,
        "batch_size": one["B"],
        "system_name": system | {"real_values": True},
        "bits": BITS.get(one["type"], "int4"),
        "tensor_parallel": one["tp"],
        "pipeline_parallel": one["pp"],
    }

    def prefill_s(P: int) -> float:
        return prefill_moddeling(input_tokens=P, **asked)["Latency"] / 1e3

    def decode_s(S: int) -> float:
        return one["B"] / decode_moddeling(input_tokens=S, output_tokens=0, Bb=1, **asked)["Throughput"]

    return served(one, prefill_s, decode_s)


if __name__ == "__main__":
    main("genz-llm", {"inference": serving})

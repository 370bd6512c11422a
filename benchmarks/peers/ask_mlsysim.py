"""Ask mlsysim about training, and about serving on one chip, because it shards no model that it serves."""

from answering import main, served
from mlsysim.core.units import Q_
from mlsysim.engine.solvers.distributed import DistributedModel
from mlsysim.engine.solvers.serving import ServingModel
from mlsysim.hardware.registry import Hardware
from mlsysim.models.types import SparseTransformerWorkload, TransformerWorkload
from mlsysim.systems.types import Fleet, NetworkFabric, Node

CHIPS = {
    "A100": "A100", "A100 40GB": "A100_40GB", "H100": "H100", "H200": "H200",
    "B200": "B200", "GB200": "B200", "MI300X": "MI300X",
    "TPU v4": "TPUv4", "TPU v5p": "TPUv5p", "TPU v6e": "TPUv6",
}  # fmt: skip
NODE, FABRIC = 8, "400 Gbit/s"  # one NIC per chip


def workload(one: dict) -> TransformerWorkload:
    """Return the model by its parameter counts: total and active."""
    m = one["model"]
    common = {
        "name": m["name"], "architecture": "Transformer", "parameters": Q_(m["params"], "count"),
        "layers": m["L"], "hidden_dim": m["D"], "heads": m["N"], "kv_heads": m["K"], "head_dim": m["H"],
        "vocab_size": m["V"],
    }  # fmt: skip
    if m["E"] == 1:
        return TransformerWorkload(**common)
    active = {"active_parameters": Q_(m["active"], "count"), "experts": m["E"]}
    return SparseTransformerWorkload(**common, **active)


def chip(one: dict) -> object:
    """Return the chip as in its own registry."""
    return getattr(Hardware.Cloud, CHIPS[one["chip"]["name"].split(",")[0]])


def training(one: dict) -> float:
    """Return the seconds of a step, at its own default efficiency of one half."""
    node = min(NODE, one["chips"])
    fleet = Fleet(
        name="fleet", count=one["chips"] // node, fabric=NetworkFabric(name="IB", bandwidth=Q_(FABRIC)),
        node=Node(name="node", accelerator=chip(one), accelerators_per_node=node,
                  intra_node_bw=Q_(one["chip"]["link"], "B/s")),
    )  # fmt: skip
    wide = one["type"] in ("bf16", "fp16")
    told = DistributedModel().solve(
        workload(one), fleet, batch_size=one["batch"], precision="fp16" if wide else "fp8", tp_size=one["tp"],
        pp_size=one["pp"], v_stages=one["chunks"], zero_stage=one["zero"], seq_len=one["T"],
        microbatch_count=max(one["batch"] // one["ranks"] // one["microbatch"], 1),
        activation_recomputation=one["remat"] == "full", overlap_comm=True,
    )  # fmt: skip
    return told.step_latency_total.m_as("s")


def serving(one: dict) -> float:
    """Return tokens per second from its time to first token and time per output token."""
    if one["tp"] * one["pp"] > 1:
        raise ValueError("serves from one chip")
    precision = {"bf16": "fp16", "fp16": "fp16", "int8": "int8", "fp8": "fp8"}.get(one["type"], "int4")

    def told(T: int) -> object:
        return ServingModel().solve(
            workload(one), chip(one), seq_len=T, batch_size=one["B"], precision=precision
        )

    return served(one, lambda P: told(P).ttft.m_as("s"), lambda S: told(S).itl.m_as("s"))


if __name__ == "__main__":
    main("mlsysim", {"training": training, "inference": serving})

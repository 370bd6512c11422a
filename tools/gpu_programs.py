"""Compiles two programs for H100s on a machine without a GPU, and writes their texts for the tests.

`python -m tools.gpu_programs FOLDER` needs the plugin of XLA for NVIDIA GPUs, unpacked in FOLDER: the wheel
`jax-cuda12-pjrt` of the version of JAX that is installed. It needs neither CUDA nor a driver. The compiler
cannot measure kernels without a GPU, so it takes its defaults: Triton for matmuls unless cuBLAS is asked for.
"""

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.cudnn import fused_attention_stablehlo
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import xla_client

from tools.environment import ROOT

FOLDER = ROOT / "tests" / "core" / "inspection" / "gpu"
PLUGIN = "jax_plugins/xla_cuda12/xla_cuda_plugin.so"
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84942979072 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  device_vendor: "NVIDIA Corporation" device_address_bits: 64 name: "NVIDIA H100 80GB HBM3"
  driver_version: "13.0.0" runtime_version: "12.8.0" compile_time_toolkit_version: "12.8.0"
  dnn_version: "9.10.0" device_interconnect_info { active_links: 18 }
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 } device_description_str: "NVIDIA H100 80GB HBM3"
"""

type Weights = dict[str, jax.Array]
LAYERS, WIDTH, HIDDEN, BATCH, TOKENS, HEADS, HEAD = 2, 1024, 4096, 8, 512, 8, 128


def sharded_step(api: Any) -> str:
    """Two layers of a decoder on eight GPUs: FSDP over four, tensor parallelism over two."""
    mesh = Mesh(np.array(devices(api, "1x1x8")).reshape(4, 2), ("data", "model"))

    def layer(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        q, k, v = (jnp.einsum("btd,dnh->btnh", x, w[name]) for name in ("query", "key", "value"))
        heads = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + jnp.einsum("btnh,nhd->btd", heads, w["output"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    def loss(weights: Weights, x: jax.Array) -> jax.Array:
        y, _ = jax.lax.scan(layer, x, weights)
        return jnp.square(y.astype(jnp.float32)).mean()

    def array(shape: tuple[int, ...], *spec: str | None) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))

    weights = {
        name: array((LAYERS, WIDTH, HEADS, HEAD), None, "data", "model") for name in ("query", "key", "value")
    } | {
        "output": array((LAYERS, HEADS, HEAD, WIDTH), None, "model", None, "data"),
        "up": array((LAYERS, WIDTH, HIDDEN), None, "data", "model"),
        "down": array((LAYERS, HIDDEN, WIDTH), None, "model", "data"),
    }
    return text(updated(loss), (weights, array((BATCH, TOKENS, WIDTH), "data")))


def attention(api: Any) -> str:
    """An attention block on one GPU, with cuDNN's causal attention and cuBLAS for its projections."""
    mesh = Mesh(np.array(devices(api, "1x1x1")), ("x",))

    def loss(w: Weights, x: jax.Array) -> jax.Array:
        q, k, v = (jnp.einsum("btd,dnh->btnh", x, w[name]) for name in ("query", "key", "value"))
        heads = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
        return jnp.square(jnp.einsum("btnh,nhd->btd", heads, w["output"]).astype(jnp.float32)).mean()

    def array(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P()))

    weights = {name: array(WIDTH, HEADS, HEAD) for name in ("query", "key", "value")}
    weights["output"] = array(HEADS, HEAD, WIDTH)
    return text(updated(loss), (weights, array(4, 1024, WIDTH)), xla_gpu_enable_triton_gemm=False)


def updated(loss: Callable[[Weights, jax.Array], jax.Array]) -> Callable[..., Weights]:
    """A step of gradient descent on a loss."""

    def step(weights: Weights, x: jax.Array) -> Weights:
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: (w - 1e-3 * g).astype(w.dtype), weights, gradients)

    return step


def devices(api: Any, topology: str) -> list[Any]:
    """H100s that exist for the compiler alone."""
    found = xla_client.make_c_api_device_topology(api, "H100", target_config=H100, topology=topology)
    return list(topologies.TopologyDescription(found._make_compile_only_devices()).devices)


def text(step: Callable[..., Weights], arguments: tuple[Any, ...], **options: bool) -> str:
    """The optimized HLO of a step."""
    traced = jax.jit(step, donate_argnums=0).trace(*arguments)
    return traced.lower(lowering_platforms=("cuda",)).compile(compiler_options=options).as_text() or ""


PROGRAMS = {"sharded-step": sharded_step, "attention": attention}


def main(folder: str) -> None:
    """Write the texts of all programs."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    fused_attention_stablehlo.check_cudnn_version = lambda *_: 91000  # of the GPU that is not there
    api = xla_client.load_pjrt_plugin_dynamically("cuda", str(Path(folder) / PLUGIN))
    xla_client.initialize_pjrt_plugin("cuda")
    FOLDER.mkdir(exist_ok=True)
    for name, program in PROGRAMS.items():
        with gzip.GzipFile(FOLDER / f"{name}.hlo.gz", "wb", mtime=0) as file:
            file.write(program(api).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])

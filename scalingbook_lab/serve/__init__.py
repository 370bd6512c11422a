"""A small serving engine on JAX: continuous batching over a paged KV cache, on any mesh."""

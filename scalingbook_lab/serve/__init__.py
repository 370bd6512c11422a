"""A small serving engine in JAX: continuous batching over a paged KV cache, on any mesh."""

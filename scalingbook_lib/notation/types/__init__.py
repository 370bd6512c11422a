"""Which shardings may an operation have when they are part of its type? The rules of JAX's mode Explicit."""

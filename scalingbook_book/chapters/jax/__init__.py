"""What the chapter on JAX hands to its reader."""

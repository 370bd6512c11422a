"""A small Transformer trainer with every kind of parallelism, whose checkpoints any mesh can resume."""

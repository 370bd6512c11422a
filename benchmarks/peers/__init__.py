"""What do other tools say of the same published runs? See `python -m benchmarks.peers`."""

"""Benchmarks of what a reader waits for, measured where a reader would be."""

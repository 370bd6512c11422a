"""Runs and grades the programs and notebooks that readers write, with JAX."""

"""Run and grade the programs and notebooks that readers write, with JAX."""

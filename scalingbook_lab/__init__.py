"""The laboratory: compiles, runs and measures with JAX what the library predicts.

Needs JAX (the extra `lab`), and `libtpu` to compile ahead of time for TPU slices.
"""

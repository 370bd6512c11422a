"""The laboratory: does the compiler agree with the formula, and does the device?

Needs JAX (the extra `lab`), and `libtpu` to compile ahead of time for TPU slices.
"""

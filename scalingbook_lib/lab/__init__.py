"""The laboratory: does the compiler agree with the formula, and does the device?

Needs JAX (`pip install 'scalingbook-lib[lab]'`), and `libtpu` to compile ahead of time for TPU slices.
"""

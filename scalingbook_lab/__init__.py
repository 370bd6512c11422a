"""Compile, run and measure with JAX the programs whose cost `scalingbook_lib` predicts.

This package needs JAX (the extra `lab`). To compile ahead of time for TPU slices it also needs `libtpu`.
"""

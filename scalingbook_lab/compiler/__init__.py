"""Compile JAX programs for local devices or for TPU slices that are not attached.

`scalingbook_lib.hlo` reads the results.
"""

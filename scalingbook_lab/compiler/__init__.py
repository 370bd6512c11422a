"""Compiles JAX programs for local devices or for absent TPU slices;
`scalingbook_lib.hlo` reads the results.
"""

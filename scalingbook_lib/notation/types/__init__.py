"""Shardings as part of an array's type: the rules of JAX's explicit sharding mode."""

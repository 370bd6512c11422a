"""Record profiles with JAX; `scalingbook_lib.profiles` reads, stores and compares them."""

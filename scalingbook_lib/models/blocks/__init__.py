"""The sublayers of models whose layers differ: what each weighs, caches for a token and keeps as a state.

A `Block` is one kind of sublayer and the number of layers that have it. The functions of this package make
the blocks of published architectures from their widths. Chapter:
Linear attention, sparse attention and diffusion.
"""

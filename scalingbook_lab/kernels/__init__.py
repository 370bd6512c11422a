"""Pallas kernels for TPUs, written to be read, and a comparison of each with XLA's own program.

`matmul` is tiled, `attention` is flash attention, `ring` is an all-gather by remote DMA, `collective_matmul`
computes while it gathers, and `ring_sum` can be configured to have a race (`races`). With
`interpret=interpreter.interpreter()` they run on this machine's simulated devices; without it, `aot.compile`
compiles them for a TPU. `comparison` compares a kernel with XLA's program, and `traffic` counts the bytes
that a kernel moves.
"""

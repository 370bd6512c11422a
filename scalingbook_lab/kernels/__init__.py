"""Pallas kernels for a TPU, written to be read, and what they gain over XLA's own programs.

`matmul` works in tiles, `attention` is flash attention, `ring` gathers by remote DMA, `collective_matmul`
computes while it gathers, and `ring_sum` can be made to race (`races`). With
`interpret=interpreter.interpreter()` they run on this machine's simulated devices; without it, `aot.compile`
compiles them for a TPU. `comparison` sets a kernel beside XLA's program, and `traffic` counts the bytes that
a kernel moves.
"""

"""What does a kernel written by hand look like, and what does it gain over XLA's own?

Pallas kernels for a TPU, each short enough to be read: `matmul` in tiles, flash `attention`, a `ring` that
gathers by remote DMA, a `collective_matmul` that computes while it gathers, and a `ring_sum` that can be made
to race (`races`). With `interpret=interpreter.interpreter()` they run on this machine's simulated devices;
without, `aot.compile` makes them a TPU's program. `beside` puts that next to XLA's own, and `traffic` counts
what a kernel moves.
"""

"""The parts that training steps and serving steps share: placement on a machine, limits, pipelines."""

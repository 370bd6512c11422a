"""A small trainer for a Transformer under every kind of parallelism,
with checkpoints that any mesh can resume.
"""

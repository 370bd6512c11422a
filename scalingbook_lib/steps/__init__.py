"""What do steps of training and of serving share? Places on a machine, limits, pipelines."""

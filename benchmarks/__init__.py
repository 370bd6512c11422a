"""How fast: what a reader waits for, measured where a reader is."""

"""What does serving cost: a prefill, a decode step, a million tokens? Chapter: Inference."""

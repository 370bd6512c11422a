"""What do many requests at once see? An event-driven simulator of a server. Chapter: Inference."""

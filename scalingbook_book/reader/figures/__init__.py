"""Whiteboard-style figures: labeled shapes, and a caption that states the conclusion."""

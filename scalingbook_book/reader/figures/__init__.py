"""Whiteboard-style figures: shapes with letters, and a caption that concludes."""

"""What is drawn as on a whiteboard? Shapes with their letters, and figures with a caption that concludes."""

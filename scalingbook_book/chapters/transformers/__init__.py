"""What the chapter on Transformer arithmetic hands to its reader."""

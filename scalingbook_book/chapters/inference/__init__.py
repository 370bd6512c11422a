"""What the chapter on inference hands to its reader."""

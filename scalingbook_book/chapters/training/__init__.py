"""What the chapter on training hands to its reader."""

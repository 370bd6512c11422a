"""What the chapter on GPUs hands to its reader."""

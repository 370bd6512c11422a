"""What the chapter on TPUs hands to its reader."""

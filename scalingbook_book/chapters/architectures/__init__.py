"""What the chapter on other architectures hands to its reader."""

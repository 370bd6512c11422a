"""What the introduction hands to its reader."""

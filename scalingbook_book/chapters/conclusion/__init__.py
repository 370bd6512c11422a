"""What the conclusions hands to its reader."""

"""What the chapter on rooflines hands to its reader."""

"""What the chapter on sharded matrices hands to its reader."""

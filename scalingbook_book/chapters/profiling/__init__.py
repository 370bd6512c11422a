"""What the chapter on profiling hands to its reader."""

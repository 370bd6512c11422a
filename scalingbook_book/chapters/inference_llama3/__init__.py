"""What the chapter on serving LLaMA 3 hands to its reader."""

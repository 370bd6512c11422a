"""What the chapter on training LLaMA 3 hands to its reader."""

"""What the chapter on training Llama 3 hands to its reader."""

"""What the chapter on serving Llama 3 hands to its reader."""

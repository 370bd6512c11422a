"""What the chapter on smaller numbers and better optimizers hands to its reader."""

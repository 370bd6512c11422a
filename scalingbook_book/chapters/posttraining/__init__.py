"""What the chapter on what comes after pretraining hands to its reader."""

"""What the chapter on other machines hands to its reader: explorers, figures, checks."""

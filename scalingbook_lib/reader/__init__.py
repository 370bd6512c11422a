"""What a chapter hands to its reader is made of: explorers, drawings, checks. Standard library only."""

"""What chapters are made of for the reader: explorers, figures and checks. Standard library only."""

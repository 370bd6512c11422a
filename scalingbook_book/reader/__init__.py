"""The interactive parts of a chapter: explorers, figures and checks. Standard library only."""

"""The book's own code: its explorers, figures and exercises by chapter, and what they are built from."""

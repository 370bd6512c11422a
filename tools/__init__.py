"""The tools that make the book from its sources; no part of the library."""

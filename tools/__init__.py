"""Tools that make the book from its sources; they are not part of the library."""

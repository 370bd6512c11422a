"""How are many requests served at once? A small engine that really does it."""

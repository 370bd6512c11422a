"""Does a Transformer learn the same, however it is spread? A small trainer that shows it."""

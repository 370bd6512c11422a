"""Running the tests: which ones a change needs, in which order, and how long each takes."""

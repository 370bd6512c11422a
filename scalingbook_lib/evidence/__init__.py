"""How right is the library? What others measured, what compilers said, and predictions held to both."""

"""Judge a reader's answer and diagnose what went wrong with it."""

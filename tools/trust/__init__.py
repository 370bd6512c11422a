"""What may be trusted, and why? The notebooks that are opened, and the tests, which are tested here."""

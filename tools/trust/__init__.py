"""Tests of what has to be trusted: random attacks on the library, mutation tests, and notebook signatures."""

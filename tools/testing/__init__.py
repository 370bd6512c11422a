"""Run the tests: select those that a change needs, order them, and record how long each takes."""

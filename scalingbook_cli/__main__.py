"""Runs the command `scalingbook`, as `python -m scalingbook_cli`."""

import sys

from scalingbook_cli import main

if __name__ == "__main__":
    sys.exit(main())

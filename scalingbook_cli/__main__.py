"""What does `python -m scalingbook_lib` do? What the script `scalingbook` does."""

import sys

from scalingbook_cli import main

if __name__ == "__main__":
    sys.exit(main())

"""Runs the trainer in a terminal: `python -m scalingbook_lib.lab.train`."""

from scalingbook_lib.lab.train.run import main

if __name__ == "__main__":
    main()

"""Runs the trainer in a terminal: `python -m scalingbook_lab.train`."""

from scalingbook_lab.train.run import main

if __name__ == "__main__":
    main()

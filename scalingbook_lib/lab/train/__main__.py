"""`python -m scalingbook_lib.lab.train`: the trainer at a terminal."""

from scalingbook_lib.lab.train.run import main

if __name__ == "__main__":
    main()

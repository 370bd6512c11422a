"""How fast can it run, what limits it, how to split it: the cost models behind the book.

Import a module and call it by its name, as in `from scalingbook_lib import models, roofline`.
"""

__version__ = "0.1.0"

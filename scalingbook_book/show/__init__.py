"""Show the book's explorers, figures and tables: as HTML in a page or notebook, as text elsewhere.

>>> from scalingbook_book import show
>>> show.table("chip, HBM", [("TPU v5e", "16 GB")], title="Memory")
Memory
chip     HBM
TPU v5e  16 GB
"""

from scalingbook_book.show.explorers import show as explorer
from scalingbook_book.show.figures import show as figure
from scalingbook_book.show.switches import launcher_flags
from scalingbook_book.show.tables import table

__all__ = ["explorer", "figure", "launcher_flags", "table"]

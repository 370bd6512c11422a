"""How is an array split over a mesh, and what does each device hold?

The book's language: arrays `A[I_XY, J]`, partial sums `C[I, K]{U_X}`, meshes `X4 Y2` and products
`A[I, J_X] · B[J_X, K] -> C[I, K]`. Read once, printed back exactly as it was read. Chapter: Sharding.
"""

from .array import Array, Dim
from .error import RULES, NotationError
from .mesh import Mesh
from .product import Product
from .reading import parse, parse_product
from .sizes import parse_sizes

__all__ = [
    "RULES",
    "Array",
    "Dim",
    "Mesh",
    "NotationError",
    "Product",
    "parse",
    "parse_product",
    "parse_sizes",
]

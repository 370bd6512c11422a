"""The book's sharding notation: how an array is sharded over a mesh, and what each device holds.

Arrays `A[I_XY, J]`, partial sums `C[I, K]{U_X}`, meshes `X4 Y2` and matmuls `A[I, J_X] · B[J_X, K] -> C[I,
K]` are parsed once and printed exactly as they were written. Chapter: Sharding.

>>> array = parse("A[I_X, J]{U_Y}")
>>> array.local_shape(Mesh(X=4, Y=2), I=1024, J=512)
(256, 512)
>>> parse_product("A[I, J_X] · B[J_X, K] -> C[I, K]").contracting
('J',)
"""

from scalingbook_lib.notation.array import Array, Dim
from scalingbook_lib.notation.error import RULES, NotationError
from scalingbook_lib.notation.mesh import Mesh, axis_names, format_sizes, join_axes
from scalingbook_lib.notation.product import Product
from scalingbook_lib.notation.reading import parse, parse_product

__all__ = [
    "RULES",
    "Array",
    "Dim",
    "Mesh",
    "NotationError",
    "Product",
    "axis_names",
    "format_sizes",
    "join_axes",
    "parse",
    "parse_product",
]

"""Public conformance vectors of models, and the comparison of somebody else's numbers with them."""

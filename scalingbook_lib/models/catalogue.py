"""Which published models does the book speak of, in which shapes, and who says so? Chapter: Transformers."""

from .transformer import Transformer


def _llama(name: str, D: int, F: int, L: int, N: int, K: int, V: int, **more: object) -> Transformer:
    return Transformer(name=name, D=D, F=F, L=L, N=N, K=K, H=D // N, V=V, **more)  # type: ignore[arg-type]


LLAMA3_8B = _llama("LLaMA-3 8B", 4096, 14336, 32, 32, 8, 128256)
LLAMA3_70B = _llama("LLaMA-3 70B", 8192, 28672, 80, 64, 8, 128256)

CATALOGUE = (LLAMA3_8B, LLAMA3_70B)

"""Which models and machines are the exercises on inference about?"""

from dataclasses import replace

from scalingbook_lib import models
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Experts, Transformer

MODEL = Transformer(name="M", L=64, D=4096, F=16_384, N=32, K=8, H=256, V=32_128, tied=True)
SPARSE = replace(MODEL, name="M with experts", experts=Experts(E=16, k=2, F=16_384))
LLAMA = models.find("LLaMA-3 70B")
DEEPSEEK = models.find("DeepSeek-V3")
V5E = chips.V5E

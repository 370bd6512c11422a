"""The output of the plain model without a cache, which recomputes everything for every token."""

import dataclasses
import functools

import jax
import numpy as np

from scalingbook_lab.serve import decode
from scalingbook_lab.train import trainer

SEED = 0
TINY, TINY_MOE = (dataclasses.replace(m, L=2) for m in (trainer.SMALL, trainer.SMALL_MOE))
CLOSE = 1e-4  # of a logit: fifty times what sums in another order were seen to change


@functools.cache
def weights(model):
    return trainer.initial(model, SEED)["weights"]


@functools.cache
def _logits(model):
    """Logits of the last token of each row; tokens after it change nothing."""
    run = functools.partial(decode.logits_without_cache, model, weights(model))
    return jax.jit(lambda tokens, last: run(tokens)[np.arange(len(tokens)), last])


def written(model, prompts, limit):
    """The greedy tokens after each prompt, and the smallest lead of the best logit in each row."""
    ends = np.array([len(prompt) for prompt in prompts])
    tokens = np.zeros((len(prompts), ends.max() + limit), np.int32)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[: len(prompt)] = prompt
    words, lead = [], np.full(len(prompts), np.inf)
    for _ in range(limit):
        logits = np.array(_logits(model)(tokens, ends - 1))
        best = np.sort(logits, -1)
        lead = np.minimum(lead, best[:, -1] - best[:, -2])
        words.append(logits.argmax(-1))
        tokens[np.arange(len(tokens)), ends] = words[-1]
        ends = ends + 1
    return np.stack(words, 1), lead

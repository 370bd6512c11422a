"""What the plain model writes with no cache, everything worked out again for every token."""

import dataclasses
import functools

import jax
import numpy as np

from scalingbook_lib.lab import decode, training

SEED = 0
TINY, TINY_MOE = (dataclasses.replace(m, L=2) for m in (training.SMALL, training.SMALL_MOE))


@functools.cache
def weights(model):
    return training.initial(model, SEED)["weights"]


@functools.cache
def _logits(model):
    return jax.jit(functools.partial(decode.recomputed, model, weights(model)))


def written(model, prompts, limit):
    """The greedy continuation of prompts[B, T], and by how much the best word led at the closest choice."""
    T = prompts.shape[1]
    tokens = np.pad(prompts, ((0, 0), (0, limit)))
    lead = np.inf
    for t in range(T, T + limit):
        logits = np.array(_logits(model)(tokens))[:, t - 1]
        best = np.sort(logits, -1)
        lead = min(lead, (best[:, -1] - best[:, -2]).min())
        tokens[:, t] = logits.argmax(-1)
    return tokens[:, T:], lead

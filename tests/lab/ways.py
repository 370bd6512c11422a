"""Trainers on eight devices under every kind of parallelism, each compiled once, and one on one device."""

import functools

from scalingbook_lab.train.trainer import SMALL, SMALL_MOE, Trainer

STEPS = 10
TOLERANCE = 1e-5  # of the loss: sums in another order, amplified over the steps

WAYS = {
    "DP": {"R": 8},
    "FSDP": {"X": 8},
    "TP with sequence parallelism": {"Y": 8},
    "FSDP x TP": {"X": 4, "Y": 2},
    "PP": {"P": 4, "R": 2},
    "CP": {"C": 4, "R": 2},
    "EP": {"Z": 4, "R": 2},
    "PP x DP x TP": {"P": 2, "R": 2, "Y": 2},
    "PP x FSDP x TP": {"P": 2, "X": 2, "Y": 2},
    "PP x EP x FSDP": {"P": 2, "Z": 2, "X": 2},
    "FSDP x CP x TP": {"X": 2, "C": 2, "Y": 2},
    "EP x FSDP x TP": {"Z": 2, "X": 2, "Y": 2},
}


@functools.cache
def trainer(ways):
    mesh = WAYS[ways]
    return Trainer(SMALL_MOE if "EP" in ways else SMALL, mesh, microbatches=4 if "P" in mesh else 1)


@functools.cache
def alone(model):
    return Trainer(model, {"X": 1}).train(STEPS).losses

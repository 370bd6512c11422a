"""Checks of the chapters on GPUs: what a GPU, a node and a cluster can do."""

from scalingbook_book.chapters.gpus.checks.chip import CHIP, LAYERS
from scalingbook_book.chapters.gpus.checks.fabric import FABRIC
from scalingbook_book.chapters.gpus.checks.plans import PLANS
from scalingbook_book.chapters.gpus.checks.sums import SUMS
from scalingbook_book.chapters.gpus.checks.tiles import KERNELS

CHECKS = CHIP + FABRIC + SUMS + LAYERS + PLANS + KERNELS

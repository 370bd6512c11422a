"""Checks of the chapters on TPUs: what a TPU does, and how its chips reach each other."""

from scalingbook_book.chapters.tpus.checks.chip import CHIP, INSIDE
from scalingbook_book.chapters.tpus.checks.pods import PODS

CHECKS = CHIP + INSIDE + PODS

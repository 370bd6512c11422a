"""Checks of the chapter on sharding: what every chip holds, what moves, and how long it takes."""

from scalingbook_book.chapters.sharding.checks.arrays import ARRAYS
from scalingbook_book.chapters.sharding.checks.axes import AXES
from scalingbook_book.chapters.sharding.checks.floors import FLOORS
from scalingbook_book.chapters.sharding.checks.products import PRODUCTS
from scalingbook_book.chapters.sharding.checks.transfers import TRANSFERS

CHECKS = ARRAYS + TRANSFERS + AXES + PRODUCTS + FLOORS

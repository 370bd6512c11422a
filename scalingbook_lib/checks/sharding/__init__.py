"""Can a reader tell what every chip holds, what moves, and for how long? Checks of the sharding chapter."""

from scalingbook_lib.checks.sharding.arrays import ARRAYS
from scalingbook_lib.checks.sharding.axes import AXES
from scalingbook_lib.checks.sharding.floors import FLOORS
from scalingbook_lib.checks.sharding.products import PRODUCTS
from scalingbook_lib.checks.sharding.transfers import TRANSFERS

CHECKS = ARRAYS + TRANSFERS + AXES + PRODUCTS + FLOORS

"""Can a reader say what serving costs, and why? Checks of the chapter on inference."""

from scalingbook_lib.checks.inference.drafts import ACCEPTED, BUILT
from scalingbook_lib.checks.inference.machines import MACHINES
from scalingbook_lib.checks.inference.servers import SERVERS
from scalingbook_lib.checks.inference.sizes import SIZES
from scalingbook_lib.checks.inference.trades import TRADES

CHECKS = SIZES + MACHINES + SERVERS + ACCEPTED + TRADES + BUILT

"""A trainer that kills itself at one line of one step; the test of resuming runs it.

`python killed.py STEP LINE ...` trains as the trainer's command line says, and kills itself at that line of
its loop, counted from the start of STEP; where no checkpoint is complete by then, at the first line where one
is. It writes down which one that was.
"""

import os
import signal
import sys

from scalingbook_lab.train import run as train
from scalingbook_lab.train.checkpoints import Checkpoints

STEP, LINE, *REST = sys.argv[1:]
FOLDER = train.arguments().parse_args(REST).folder
LINES, TOOL = sys.monitoring.events.LINE, sys.monitoring.DEBUGGER_ID

left = int(LINE)


def passed(code, number):
    """Called before each line of the loop."""
    global left
    if sys._getframe(1).f_locals.get("step", -1) < int(STEP):
        return
    left -= 1
    if left > 0:
        return
    with Checkpoints(FOLDER / "checkpoints") as kept:
        whole = kept.latest()
    if whole is not None:
        (FOLDER / "whole.txt").write_text(str(whole))
        os.kill(os.getpid(), signal.SIGKILL)


sys.monitoring.use_tool_id(TOOL, "killed")
sys.monitoring.register_callback(TOOL, LINES, passed)
sys.monitoring.set_local_events(TOOL, train.train.__code__, LINES)
train.main(REST)

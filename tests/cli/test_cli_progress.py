"""A search says how far it is where somebody reads it, and ends with the best so far on Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

LONG = {
    "serve": ["serve", "deepseek-v3", "b300:4096"],
    "plan": ["plan", "deepseek-v3", "h100:65536", "--batch", "65536", "--sequence", "4096"],
}


def started(line, **streams):
    run = [sys.executable, "-m", "scalingbook_cli", *line]
    return subprocess.Popen(
        run,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
        **streams,
    )


@pytest.mark.parametrize("command", LONG)
def test_an_interrupt_prints_the_best_so_far_and_that_it_is_not_the_end(command):
    searching = started([*LONG[command], "--progress", "--json"], stderr=subprocess.PIPE)
    assert "Ctrl-C stops the search and prints the best so far" in searching.stderr.readline()
    searching.send_signal(signal.SIGINT)
    out, err = searching.communicate(timeout=300)
    assert searching.returncode == 130
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("Interrupted: this is the best plan found so far")
    values = json.loads(out)
    assert values["feasible"]
    assert values["search"]["stopped"]
    assert values["search"]["timed" if command == "plan" else "evaluated"] > 0


def test_a_terminal_sees_one_line_and_a_pipe_none(ask):
    reads, writes = pty.openpty()
    line = ["serve", "llama-3-8b", "h100:8", "--pp", "1"]
    searching = started([*line, "--progress"], stderr=writes)
    os.close(writes)
    seen = b""
    try:
        while part := os.read(reads, 4096):
            seen += part
    except OSError:  # the other end is closed
        pass
    os.close(reads)
    searching.communicate(timeout=300)
    assert searching.returncode == 0
    assert seen.startswith(b"\r1 layouts found")
    assert seen.endswith(b"\r\x1b[K")  # and nothing is left of it
    assert b"\n" not in seen
    assert ask(" ".join(line)).err == ""

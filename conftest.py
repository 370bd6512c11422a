"""What holds for every test: quiet kernels, whole notebooks on one worker, the scope, and no skips in CI."""

import os

import pytest

from tools import environment
from tools.testing import durations, scope

environment.apply(compile_cache=True)
CI = os.environ.get("CI", "").lower() in ("1", "true")


def pytest_configure(config):
    if (
        getattr(config.option, "nbval_cell_timeout", None) == 2000
    ):  # its default; a dead kernel is noticed by it alone
        config.option.nbval_cell_timeout = 300
    if getattr(config.option, "dist", "no") == "load":  # the cells of a notebook share a kernel
        config.option.dist = "loadfile"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests of the scope that `TEST_SCOPE` names; of notebooks, keep every cell."""
    kept, left_out = [], []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            marks.add("sampled")
        notebook = item.nodeid.partition("::")[0].endswith(".ipynb")
        (kept if notebook or scope.wanted(item.nodeid, marks) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with durations.recorded(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a skipped test has tested nothing, and that is a failure."""
    report = yield
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and in CI a skip is a failure: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, and in CI a skip is a failure: {report.longrepr}"
    return report

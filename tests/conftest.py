"""Settings of every test run: one thread per process, and no silent skips in CI."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # numpy and torch read it when they are imported


def _failed_if_skipped(report):
    if report.skipped and "CI" in os.environ and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as failed in CI: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _failed_if_skipped((yield))

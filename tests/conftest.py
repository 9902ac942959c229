"""Rules of every test run.

- One thread per process.
- Ctrl-C works in the processes that tests start, also where the suite itself was started with SIGINT ignored.
- A test that changes the environment variables of its process and leaves them so has failed.
- Where nothing can be rendered, tests marked `gl` are skipped, and so are those that fail for that reason. Those marked
  `root` are skipped for other users. In CI a skipped test is a failed test.
- Every test has a time limit: `timeout` in pyproject.toml, and `SLOW_LIMIT` if it is marked `slow`.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from distpaml.descriptors.render import RenderError, working_backend

SLOW_LIMIT = 2400  # seconds
SET_BY_IMPORTS = {
    "CRC32C_SW_MODE",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
    "MKL_CBWR",
    "OPENBLAS_CORETYPE",
    "RAY_CLIENT_MODE",
    "PYGAME_HIDE_SUPPORT_PROMPT",
    "PYTEST_CURRENT_TEST",
    "TORCHINDUCTOR_CACHE_DIR",
}
"""Variables that libraries, ours and others, set when they are imported, and pytest."""

os.environ.setdefault("OMP_NUM_THREADS", "1")  # numpy and torch read it when they are imported
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started by `nohup` or `&`, and children would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _kept_environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    after = dict(os.environ)
    names = sorted((before | after).keys() - SET_BY_IMPORTS)
    changed = [name for name in names if before.get(name) != after.get(name)]
    for name in changed:  # the tests that follow have done nothing wrong
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
    assert not changed, f"the environment variables {', '.join(changed)} were left changed"


module_keeps_environment = pytest.fixture(autouse=True, scope="module")(_kept_environment)
test_keeps_environment = pytest.fixture(autouse=True)(_kept_environment)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    if item.get_closest_marker("gl") and (why := _cannot_render()):
        pytest.skip(why)
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("Namespaces need root.")
    with _skipped_without_gl():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    with _skipped_without_gl():
        return (yield)


@contextmanager
def _skipped_without_gl() -> Iterator[None]:
    try:
        yield
    except RenderError:
        if why := _cannot_render():
            pytest.skip(why)
        raise


@cache
def _cannot_render() -> str | None:
    try:
        working_backend()
    except RenderError as error:
        return str(error)
    return None


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

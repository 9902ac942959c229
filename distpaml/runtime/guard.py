"""A small process that outlives its driver by a moment: however the driver ends, it kills what is left of its Ray.

The kernel ends Ray's daemons together with the driver. But the agents of a raylet notice that it is gone only then, and
try for a minute to report it to a GCS that is gone too; so does a worker that has just been started. So all that Ray
starts carries a mark in its environment, and the guard, which waits for the end of its input, looks for it then: the
kernel closes that even for a driver that was killed.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex

MARK = "DISTPAML_RAY"
"""The variable with the mark, which processes of Ray inherit from one another."""
GUARD = """
import os, sys, time
mark = sys.argv[1].encode()
sys.stdin.read()
quiet = 0
for _ in range(100):
    found = False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read().split(b"\\0"):
                    found = True
                    os.kill(int(pid), 9)
        except OSError:
            pass
    quiet = 0 if found else quiet + 1
    if quiet == 2:  # a process has no environment in the moment in which it begins another program
        break
    time.sleep(0.1)
"""


@contextmanager
def guarded() -> Iterator[Callable[[], None]]:
    """Start Ray inside of this, then call what it yields; what this process starts later is not Ray's."""
    if sys.platform != "linux":
        yield lambda: None
        return
    mark, before = token_hex(8), os.environ.get(MARK)

    def unmark() -> None:
        if before is None:
            os.environ.pop(MARK, None)
        else:
            os.environ[MARK] = before

    with subprocess.Popen(
        [sys.executable, "-ISc", GUARD, f"{MARK}={mark}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},  # it is not Ray's, nor that of a Ray in which this process runs
        start_new_session=True,  # Ctrl-C is for the driver
    ) as guard:
        assert guard.stdin is not None
        os.environ[MARK] = mark
        try:
            yield unmark
        finally:
            unmark()
            with suppress(OSError):  # it may have been killed before us
                guard.stdin.close()

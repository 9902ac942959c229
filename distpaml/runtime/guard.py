"""A small process that outlives its driver by a moment: however the driver ends, it kills what is left of its Ray.

The kernel ends Ray's daemons together with the driver. But the agents of a raylet notice that it is gone only then, and
try for a minute to report it to a GCS that is gone too. So the driver names every process of Ray to the guard, which
waits for the end of its input: the kernel closes that even for a driver that was killed.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

import psutil

from distpaml.runtime.lifeline import with_descendants

STARTING, LATER = 0.1, 2.0
"""Seconds between two looks at who is there, while Ray starts and afterwards."""
GUARD = """
import os, sys
for pid, started in {tuple(line.split()) for line in sys.stdin}:
    try:
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[19] == started:
                os.kill(int(pid), 9)
    except OSError:
        pass
"""


@contextmanager
def guarded() -> Iterator[Callable[[], None]]:
    """Start Ray inside of this, then call what it yields; what this process starts later is not Ray's."""
    if sys.platform != "linux":
        yield lambda: None
        return
    own, started, over = psutil.Process(), threading.Event(), threading.Event()
    with subprocess.Popen(
        [sys.executable, "-ISc", GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
        start_new_session=True,  # Ctrl-C is for the driver
    ) as guard:
        assert guard.stdin is not None
        others = set(own.children())
        thread = threading.Thread(target=_name, args=(own, others, guard.stdin, started, over), daemon=True)
        thread.start()
        try:
            yield started.set
        finally:
            over.set()
            thread.join()
            with suppress(OSError):  # it may have been killed before us
                guard.stdin.close()


def _name(
    own: psutil.Process,
    others: set[psutil.Process],
    guard: IO[str],
    started: threading.Event,
    over: threading.Event,
) -> None:
    """Tell the guard of every process that Ray starts; `others` were there before."""
    ray, known = set[psutil.Process](), set[psutil.Process]()
    with suppress(OSError, psutil.Error):  # without a guard, Ray's own minute has to do
        while True:
            last = started.is_set()
            if not last:
                ray = set(own.children()) - others
            for process in with_descendants(ray) - known:
                known.add(process)
                with suppress(OSError), open(f"/proc/{process.pid}/stat") as file:
                    guard.write(f"{process.pid} {file.read().rpartition(')')[2].split()[19]}\n")
            if over.wait(LATER if last else STARTING):
                return

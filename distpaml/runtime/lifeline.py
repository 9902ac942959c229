"""What holds Ray's processes and ours together: when one side is gone, the other ends within a second.

A driver whose raylet has ended waits for ever for a new one, and Ray aborts a driver without a GCS after a minute,
while no exception reaches the main thread. So a thread of ours watches the daemons and, when one is gone, kills the
rest of Ray and ends the command in a sentence. Workers are killed by the kernel together with their raylet.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

import psutil

from distpaml.errors import UserError, printable

INTERVAL, PATIENCE = 0.25, 3.0
"""Seconds between two looks; seconds in which a daemon may be the reason for an error."""

_remedy = ""


@contextmanager
def remedy(words: str) -> Iterator[None]:
    """Inside of this, a command that loses Ray ends and says `words`, what to do, such as "continue with: …"."""
    global _remedy
    before, _remedy = _remedy, words
    try:
        yield
    finally:
        _remedy = before


def with_remedy(said: str) -> str:
    """A sentence with the command's remedy."""
    return f"{said}; {_remedy}" if _remedy else f"{said}."


def daemons_of(session: str, raylet_socket: str) -> list[psutil.Process]:
    """The raylet that this process is connected to, and the GCS of the session of Ray if it is on this machine.

    A cluster may have other raylets here; it can do without them.
    """
    words = {"raylet": f"--raylet_socket_name={raylet_socket}", "gcs_server": f"--session-name={session}"}
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            if words.get(process.info["name"]) in process.cmdline():
                found.append(process)
    return found


@contextmanager
def watched(daemons: Collection[psutil.Process], ours: bool) -> Iterator[None]:
    """Inside of this, the loss of a daemon ends the command; where no command runs, it is the reason of any error.

    If the daemons are `ours`, all that they started is killed.
    """
    over = threading.Event()
    if _remedy:
        threading.Thread(target=_watch, args=(daemons, ours, over), daemon=True, name="watch Ray").start()
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if lost := _lost(daemons):
                raise UserError(with_remedy(lost)) from error
            time.sleep(INTERVAL)
        raise
    finally:
        over.set()


def _watch(daemons: Collection[psutil.Process], ours: bool, over: threading.Event) -> None:
    started = set(daemons)
    while not over.wait(INTERVAL):
        if ours:
            started |= with_descendants(daemons)
        if lost := _lost(daemons):
            _end_command(lost, started if ours else ())


@contextmanager
def in_time(seconds: float, said: str) -> Iterator[None]:
    """What takes longer than this ends the command; the processes that it has started are killed."""
    over, before = threading.Event(), set(psutil.Process().children())

    def wait() -> None:
        if not over.wait(seconds):
            _end_command(said, with_descendants(set(psutil.Process().children()) - before))

    if _remedy:
        threading.Thread(target=wait, daemon=True, name="limit").start()
    try:
        yield
    finally:
        over.set()


def _end_command(said: str, processes: Collection[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        print(f"error: {printable(with_remedy(said))}", file=sys.stderr, flush=True)
    os._exit(2)  # the main thread waits inside Ray, where nothing reaches it


def _lost(daemons: Collection[psutil.Process]) -> str:
    return "" if all(map(is_alive, daemons)) else "Ray on this machine has ended, killed or out of memory"


def with_descendants(processes: Collection[psutil.Process]) -> set[psutil.Process]:
    found = set(processes)
    for process in processes:
        with suppress(psutil.Error):
            found.update(process.children(recursive=True))
    return found


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE  # nobody may reap an orphan
    except psutil.Error:
        return False


def die_with_raylet() -> None:
    """End this worker with the raylet that started it; by itself it would notice after a minute if it is busy."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

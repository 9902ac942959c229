"""Finds Ray processes of this test by their titles."""

import signal
import time
from threading import Thread

import psutil


def processes(title: str, of: int | None = None) -> list[psutil.Process]:
    """Descendants of a process (default: this one) whose titles start with `title`, such as `ray::TrainerActor.fit`."""
    found = []
    for process in psutil.Process(of).children(recursive=True):
        try:
            if " ".join(process.cmdline()).startswith(title):
                found.append(process)
        except psutil.Error:
            continue
    return found


def eventually(condition, seconds: float = 60.0):
    """The first true value of `condition()`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"nothing came of {condition} in {seconds} s")


class Killer(Thread):
    """Sends kill -9 to the first process of that title that it sees, once."""

    def __init__(self, title: str) -> None:
        super().__init__(daemon=True)
        self.title, self.killed = title, 0

    def run(self) -> None:
        victim = eventually(lambda: processes(self.title), 120.0)[0]
        victim.send_signal(signal.SIGKILL)
        self.killed = victim.pid

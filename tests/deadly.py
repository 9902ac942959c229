"""A process that kills itself while it writes."""

import os
import signal


def die_at_fsync(at: int) -> None:
    """From now on the `at`-th fsync of this process is its end, before or after it took place."""
    calls, fsync = 0, os.fsync

    def deadly(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            if at % 2:
                fsync(descriptor)
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(descriptor)

    os.fsync = deadly

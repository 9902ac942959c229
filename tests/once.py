"""What takes long is made once for all processes of a test run."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def once(factory, name: str) -> Iterator[tuple[Path, bool]]:
    """A directory that all test processes share, with whether it is still to be filled."""
    root = factory.getbasetemp()
    folder = (root.parent if root.name.startswith("popen-") else root) / name
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "made"
        new = not done.exists()
        if new:
            folder.mkdir(exist_ok=True)
        yield folder, new
        done.touch()

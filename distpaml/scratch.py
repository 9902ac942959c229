"""Temporary folders that do not outlive their process by long: what a killed one leaves goes at the next start.

All of them are in one folder of the user's own, /tmp/distpaml-UID, to which nobody else can write.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from distpaml.errors import UserError


def scratch() -> Path:
    """The user's folder for temporary files; one that somebody else could have put links into is refused."""
    folder = Path(tempfile.gettempdir()) / f"distpaml-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise UserError(f"{folder} cannot be used: {error.strerror}; set TMPDIR.") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UserError(f"{folder} should be a folder that only you can write to; remove it, or set TMPDIR.")
    return folder


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder for this process. Whoever makes one removes those whose processes are gone: nobody locks them."""
    top = scratch()
    with FileLock(top / "lock"):
        for left in top.glob("process-*"):
            _remove_unless_used(left)
        folder = Path(tempfile.mkdtemp(prefix="process-", dir=top))
        lock = FileLock(folder / "lock")
        lock.acquire()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _remove_unless_used(folder: Path) -> None:
    try:
        with FileLock(folder / "lock", timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
    except (Timeout, OSError):
        pass  # in use, or just removed

"""Files that are there whole or not at all, whatever happens while they are written, and folders with one writer."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from distpaml.errors import UserError


def write_durably(path: Path, contents: bytes) -> None:
    """Write beside `path` and rename: a crash leaves the old file or the new one, a failure no trace."""
    beside = path.with_name(f".{path.name}")
    try:
        with open(beside, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def append_durably(path: Path, line: bytes) -> None:
    """Add a line to a file: when this returns it is safe, and a failure leaves the file as it was."""
    new = not path.exists()
    with open(path, "ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), size)
            raise
    if new:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, other: str, patience: float = 0.0) -> Iterator[None]:
    """The folder, made if need be, with nobody else writing into it; `other` is who might, for `patience` seconds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        open(folder / "lock", "ab").close()
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}; choose another directory.") from error
    lock = FileLock(folder / "lock", patience, thread_local=False, poll_interval=0.02, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(f"{other} is writing into {folder}; wait for it or choose another directory.") from error
    except OSError as error:
        raise UserError(f"{folder} cannot be locked: {error.strerror}; choose a directory on another disk.") from error
    try:
        yield
    finally:
        lock.release()

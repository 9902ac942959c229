"""Files that are there whole or not at all, whatever happens while they are written, and folders with one writer."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distpaml.errors import UserError


class BusyError(UserError):
    """Another process writes into the folder."""


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


def sync_folder(folder: Path) -> None:
    """Make new names in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, other: str) -> Iterator[None]:
    """The folder, made if need be, with nobody else writing into it; `other` is who might."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / "lock", "ab")  # noqa: SIM115
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}; choose another directory.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(f"{other} is writing into {folder}; wait for it or choose another directory.") from error
        except OSError as error:
            raise UserError(
                f"{folder} cannot be locked: {error.strerror}; choose a directory on another disk."
            ) from error
        yield

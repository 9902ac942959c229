"""Files that are there whole or not at all, whatever happens while they are written, and folders with one writer.

No write follows a symbolic link: whoever can put one into a folder could otherwise have us overwrite a file elsewhere.
Only regular files are read: a pipe would have us wait for ever, and a device such as /dev/zero fill the memory.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from filelock import FileLock, Timeout

from distpaml.errors import UserError

_SCRATCH = re.compile(r"\.[0-9a-f]{16}\.tmp")


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The contents of a file, as long as it is now; an `OSError` if it is not regular or has over `most` bytes."""
    with open(path, "rb", opener=_regular) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise OSError(errno.EFBIG, f"it has more than {most / 1e6:g} MB")
        return file.read(size)


def _regular(path: str | Path, flags: int) -> int:
    """Open a regular file, and nothing that might never answer; directories are refused by all who call it."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    if stat.S_IFMT(os.fstat(descriptor).st_mode) in (stat.S_IFREG, stat.S_IFDIR):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def write_durably(path: Path, contents: bytes) -> None:
    """Write beside `path` and rename: a crash leaves the old file or the new one, a failure no trace.

    A pipe or a device, such as /dev/stdout, is refused: what should go there would take its place.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    beside = path.with_name(f".{token_hex(8)}.tmp")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def append_durably(path: Path, line: bytes) -> None:
    """Add a line to a file: it is safe when this returns, and a failure leaves the file as it was."""
    new = not path.exists()
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | (os.O_CREAT | os.O_EXCL if new else 0)
    with open(os.open(path, flags, 0o666), "ab", buffering=0) as file:
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


def cut(path: Path, size: int) -> None:
    """Drop everything after the first `size` bytes of a file."""
    with open(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb", buffering=0) as file:
        os.ftruncate(file.fileno(), size)
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make new names in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, other: str, patience: float = 0.0) -> Iterator[None]:
    """The folder, created if need be, with nobody else writing into it; waits `patience` seconds for `other`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.close(_regular(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW))
    except (OSError, ValueError) as error:
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        said = "a file is in the way" if is_file else getattr(error, "strerror", None) or error
        raise UserError(f"{folder} cannot be written: {said}; choose another directory.") from error
    lock = FileLock(folder / "lock", patience, thread_local=False, poll_interval=0.02, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(f"{other} is writing into {folder}; wait for it or choose another directory.") from error
    except OSError as error:
        raise UserError(f"{folder} cannot be locked: {error.strerror}; choose a directory on another disk.") from error
    try:
        _tidy(folder)
        yield
    finally:
        lock.release()


def _tidy(folder: Path) -> None:
    """Remove what killed processes left half written."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _SCRATCH.fullmatch(entry.name) and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                os.unlink(entry)

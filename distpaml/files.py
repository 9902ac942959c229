"""Files that are there whole or not at all, whatever happens while they are written."""

import os
from pathlib import Path


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

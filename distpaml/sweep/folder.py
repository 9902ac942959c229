"""Where a sweep's files are: a folder that all machines share, or object storage (`s3://bucket/…`, `gs://bucket/…`).

    sweep.yaml          the sweep, every key
    events.jsonl        what happened to the trials, in order
    trials/NAME/        the directory of one run (see `distpaml.records`)
    tensorboard/NAME/, wandb/    what trackers wrote
    report/index.html   the report

Object storage cannot be appended to, so every machine works in a folder of its own and copies what is finished.
"""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from distpaml.errors import UserError


@dataclass(frozen=True)
class Folder:
    """A sweep's folder, by path or by URI; the same object serves on every machine."""

    where: str

    @classmethod
    def of(cls, where: str) -> "Folder":
        return cls(where if "://" in where else str(Path(where).absolute()))

    @property
    def remote(self) -> bool:
        return "://" in self.where

    @property
    def local(self) -> Path:
        """Where this machine reads and writes."""
        if not self.remote:
            return Path(self.where)
        return Path(tempfile.gettempdir()) / f"distpaml-{hashlib.sha256(self.where.encode()).hexdigest()[:16]}"

    def pull(self, name: str = "") -> None:
        """Bring what is stored under `name` to this machine."""
        if self.remote:
            storage, root = self._storage()
            if storage.get_file_info(_joined(root, name)).type != fs.FileType.NotFound:
                self._copy(storage, _joined(root, name), fs.LocalFileSystem(), str(self.local / name))

    def push(self, *names: str) -> None:
        """Store what this machine has under `names`, in their order."""
        if self.remote:
            storage, root = self._storage()
            for name in names:
                if (self.local / name).exists():
                    self._copy(fs.LocalFileSystem(), str(self.local / name), storage, _joined(root, name))

    def drop(self, name: str) -> None:
        """Remove a stored file that this machine has removed."""
        if self.remote:
            storage, root = self._storage()
            if storage.get_file_info(_joined(root, name)).type == fs.FileType.File:
                storage.delete_file(_joined(root, name))

    def _storage(self) -> tuple[fs.FileSystem, str]:
        try:
            return fs.FileSystem.from_uri(self.where)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UserError(f"{self.where} cannot be used: {' '.join(str(error).split())}.") from error

    def _copy(self, source: fs.FileSystem, this: str, target: fs.FileSystem, there: str) -> None:
        try:
            if source.get_file_info(this).type == fs.FileType.File:
                target.create_dir(str(Path(there).parent), recursive=True)
            else:
                target.create_dir(there, recursive=True)
            fs.copy_files(this, there, source_filesystem=source, destination_filesystem=target)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{this} cannot be copied to {there}: {' '.join(str(error).split())}.") from error


def _joined(root: str, name: str) -> str:
    return f"{root}/{name}" if name else root

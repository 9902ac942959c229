"""Where a sweep is stored: a folder that all machines share, or object storage (`s3://bucket/…`, `gs://bucket/…`).

    sweep.yaml          the sweep, every key
    id                  tells machines that they see the same folder
    events.jsonl        what happened to the trials, in order
    trials/NAME/        the directory of one run (see `distpaml.records`)
    tensorboard/NAME/, wandb/    files of the trackers
    report/index.html   the report
    README.md           commands to look at it
    lock                held by the driver

Object storage has no append, so every machine works in a local folder and copies what is finished.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from distpaml.command_line import shown_path
from distpaml.durable_io import write_durably
from distpaml.errors import UserError
from distpaml.scratch import scratch


@dataclass(frozen=True)
class Storage:
    """A sweep's folder, by path or URI; the same object works on every machine."""

    where: str
    id: str = ""
    """The sweep's id: separates local copies of different sweeps at the same URI."""

    @classmethod
    def of(cls, where: str) -> "Storage":
        if "://" in where:
            return cls(where)
        path = Path(where).absolute()
        with _said(f"{where} cannot be the folder of a sweep"), suppress(FileNotFoundError, NotADirectoryError):
            os.stat(
                path / "sweep.yaml"
            )  # of a name that is too long, or in a folder that is closed, it fails otherwise
        return cls(str(path))

    @property
    def remote(self) -> bool:
        return "://" in self.where

    @property
    def local(self) -> Path:
        """Where this machine reads and writes."""
        if not self.remote:
            return Path(self.where)
        return scratch() / hashlib.sha256(f"{self.where} {self.id}".encode()).hexdigest()[:16]

    @property
    def shown(self) -> str:
        """The folder as short as the user could write it here."""
        return self.where if self.remote else shown_path(Path(self.where))

    def inside(self, name: str) -> "Storage":
        """A folder in this one."""
        path, mark, options = self.where.partition("?")
        return Storage(f"{path.rstrip('/')}/{name}{mark}{options}", self.id)

    def identify(self) -> str:
        """The folder's id; creates one if there is none."""
        file = self.local / "id"
        if not file.exists():
            with _said(f"{self.where} cannot be written"):
                file.parent.mkdir(parents=True, exist_ok=True)
                write_durably(file, uuid4().hex.encode())
        self.push("id")
        with _said(f"{file}, by which machines know the sweep's folder, cannot be read"):
            return file.read_text()

    def remove(self) -> None:
        """Delete everything, here and in storage."""
        if self.remote:
            filesystem, root = self._filesystem()
            with _said(f"{self.where} cannot be removed"):
                filesystem.delete_dir(root)
        shutil.rmtree(self.local, ignore_errors=True)

    def forget_copy(self) -> None:
        """Delete this machine's copy of what is in object storage."""
        if self.remote:
            shutil.rmtree(self.local, ignore_errors=True)

    def missing_folders(self) -> list[str]:
        """Folders above this one that do not exist yet, the deepest first."""
        filesystem, root = self._filesystem()
        above = [str(folder) for folder in Path(root).parents if str(folder) not in (".", "/")]
        with _said(f"{self.where} cannot be read"):
            kinds = [filesystem.get_file_info(folder).type for folder in above]
        return [folder for folder, kind in zip(above, kinds, strict=True) if kind == fs.FileType.NotFound]

    def remove_empty(self, folders: list[str]) -> None:
        """Delete those of the folders, the deepest first, that nobody has put anything into."""
        filesystem, _ = self._filesystem()
        for folder in folders:
            selector = fs.FileSelector(folder, allow_not_found=True)
            with _said(f"{folder} cannot be removed"):
                exists = filesystem.get_file_info(folder).type != fs.FileType.NotFound
                if exists and not filesystem.get_file_info(selector):
                    filesystem.delete_dir(folder)

    def forget(self) -> None:
        """Delete the local copy of a sweep that is no longer stored."""
        if self.remote and not self._has("sweep.yaml"):
            shutil.rmtree(self.local, ignore_errors=True)

    def pull(self, name: str = "") -> None:
        """Copy what is stored under `name` to this machine."""
        if self.remote and self._has(name):
            filesystem, root = self._filesystem()
            self._copy(filesystem, _joined(root, name), fs.LocalFileSystem(), str(self.local / name))

    def push(self, *names: str) -> None:
        """Store the local `names`, in this order."""
        if self.remote:
            filesystem, root = self._filesystem()
            for name in names:
                if (self.local / name).exists():
                    self._copy(fs.LocalFileSystem(), str(self.local / name), filesystem, _joined(root, name))

    def push_longer(self, *names: str) -> None:
        """Store `names`, unless the last of them, a file that only grows, is longer in storage: then another process
        has continued from there."""
        if self.remote:
            filesystem, root = self._filesystem()
            with _said(f"{self.where} cannot be read"):
                stored = filesystem.get_file_info(_joined(root, names[-1])).size or 0
            if stored > (self.local / names[-1]).stat().st_size:
                raise UserError(f"Another process has continued {names[-1]}.")
            self.push(*names)

    def drop(self, name: str) -> None:
        """Delete a stored file that was deleted locally."""
        if self.remote and self._has(name):
            filesystem, root = self._filesystem()
            with _said(f"{_joined(root, name)} cannot be removed"):
                filesystem.delete_file(_joined(root, name))

    def _has(self, name: str) -> bool:
        filesystem, root = self._filesystem()
        with _said(f"{self.where} cannot be read"):
            return filesystem.get_file_info(_joined(root, name)).type != fs.FileType.NotFound

    def _filesystem(self) -> tuple[fs.FileSystem, str]:
        with _said(f"{self.where} cannot be used"):
            return fs.FileSystem.from_uri(self.where) if self.remote else (fs.LocalFileSystem(), self.where)

    def _copy(self, source: fs.FileSystem, this: str, target: fs.FileSystem, there: str) -> None:
        with _said(f"{this} cannot be copied to {there}"):
            if source.get_file_info(this).type == fs.FileType.File:
                target.create_dir(str(Path(there).parent), recursive=True)
            else:
                target.create_dir(there, recursive=True)
            fs.copy_files(this, there, source_filesystem=source, destination_filesystem=target)


@contextmanager
def _said(what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{what}: {' '.join(str(error).split()).rstrip('.')}.") from error


def _joined(root: str, name: str) -> str:
    return f"{root}/{name}" if name else root

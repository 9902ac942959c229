"""What an experiment keeps on disk. The journal is the truth; everything else follows from it or is named in it.

    experiment.yaml       the declaration, every key
    journal.jsonl         one line per call that changed something
    data/0007.npz         the trajectories of line 7
    model-….safetensors   fitted models; they can be computed again
    learning.json         errors of left-out tasks; they can be computed again
    report/               the page of `distpaml report`
    lock                  held during a call that writes
    damaged-1/            what a repair set aside

A line is written once its arrays are safe on disk, and a call returns once its line is. So a process that is killed
at any moment loses nothing that was returned; half a line at the end was not returned, and is dropped. Lines hold
checksums of themselves and of their files (`distpaml.checksums`). Two processes may work on one experiment: calls
wait for each other, and each first reads what the other has added.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from distpaml.ask_tell.dimensions import Value
from distpaml.ask_tell.recordings import Recording
from distpaml.checksums import DamagedError, checksum, read_verified, sealed, verified
from distpaml.durable_io import append_durably, cut, locked, read_regular, sync_folder, write_durably
from distpaml.errors import UserError

DECLARATION = "experiment.yaml"
OTHER, PATIENCE = "Another process", 60.0
"""Whom calls wait for, and how many seconds."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    at: str = Field(default_factory=_now)
    """When it happened; nothing depends on it."""


class Asked(BaseModel):
    """A task to try."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: int
    descriptor: dict[str, Value]
    latent: tuple[float, ...] | None = None
    """Where the model expects the task in latent space, if a model chose it."""
    utility: float | None = None
    cost: float | None = None


class Ask(_Line):
    """Tasks were asked for, chosen with a model unless there were too few observations for one."""

    event: Literal["ask"] = "ask"
    tasks: tuple[Asked, ...]
    model: str | None


class Tell(_Line):
    """A task was observed, perhaps once more."""

    event: Literal["tell"] = "tell"
    id: int
    transitions: int
    notes: tuple[str, ...] = ()


class Attach(_Line):
    """A task that nobody asked for was observed."""

    event: Literal["attach"] = "attach"
    id: int
    descriptor: dict[str, Value]
    transitions: int
    notes: tuple[str, ...] = ()


class Fail(_Line):
    """A task could not be tried, or what was told of it is withdrawn."""

    event: Literal["fail"] = "fail"
    id: int
    reason: str


Event = Ask | Tell | Attach | Fail
_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


class Journal:
    """The journal in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self._files: list[Mapping[str, str]] = []  # of every line, with their checksums
        self._digest, self._read_to = "", 0  # of the last line; bytes

    @property
    def file(self) -> Path:
        return self.folder / "journal.jsonl"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone with an up-to-date journal."""
        with locked(self.folder, OTHER, PATIENCE):
            self.refresh(trim=True)
            yield

    def refresh(self, trim: bool = False) -> None:
        """Read what was added; with `trim`, drop a line that was cut off at the end of the file."""
        last = 0 if self._read_to else max(self.stored(), default=0)
        contents = self._unread()
        command = f"distpaml repair --dir {shlex.quote(str(self.folder))}"
        remedy = f"restore it from a copy, or `{command}` goes back to the last whole line"
        for line in verified(contents, self.file, remedy, self._digest, first=len(self.events) + 1):
            if DECLARATION in line.files:
                self._verify_declaration(line.files[DECLARATION])
            try:
                self.events.append(_EVENT.validate_python(line.values))
            except ValidationError as error:
                said = error.errors()[0]["msg"]
                raise UserError(f"{self.file} was written by another version of distpaml: {said}.") from error
            self._files.append(line.files)
            self._digest, self._read_to = line.digest, self._read_to + line.size
        if last > len(self.events) + 1:  # a call that was killed leaves the data of one line
            found = f"{self.file} ends after line {len(self.events)}, but data/{last:04d}.npz belongs to a later one"
            raise DamagedError(f"{found}; {remedy}.")
        if trim and not contents.endswith(b"\n") and contents:
            with explained(self.file):
                cut(self.file, self._read_to)

    def stored(self) -> dict[int, Path]:
        """Files of data by their lines; other files may lie beside them."""
        files = self.folder.glob("data/*.npz")
        return {int(file.stem): file for file in files if re.fullmatch(r"\d{4,}", file.stem, re.ASCII)}

    def append(self, event: Event, recording: Recording | None = None) -> None:
        """Keep an event with its data; once this returns, they survive whatever happens."""
        with explained(self.folder):
            files = {} if self.events else {DECLARATION: checksum((self.folder / DECLARATION).read_bytes())}
            if recording is not None:
                files |= self._write(len(self.events) + 1, recording)
            line, digest = sealed(event.model_dump_json(), files, self._digest)
            append_durably(self.file, line)
        self.events.append(event)
        self._files.append(files)
        self._digest, self._read_to = digest, self._read_to + len(line)

    def recording(self, line: int) -> Recording:
        """The trajectories of a line, counted from 1."""
        (name,) = self._files[line - 1].keys() - {DECLARATION}
        id = getattr(self.events[line - 1], "id", "ID")
        remedy = f"restore it from a copy, or withdraw it with `distpaml fail {id} damaged` and tell it again"
        contents = read_verified(self.folder / name, self._files[line - 1][name], remedy)
        with np.load(BytesIO(contents), allow_pickle=False) as arrays:
            states, controls, lengths = (arrays[name] for name in ("states", "controls", "lengths"))
        cuts = np.cumsum(lengths)[:-1]
        return Recording(tuple(np.split(states, cuts + np.arange(1, len(lengths)))), tuple(np.split(controls, cuts)))

    def repair(self) -> tuple[int, Path | None]:
        """Keep the lines before the first damaged one, and set the others aside with their data: how many, and where.

        Call it on a fresh journal.
        """
        if not any(os.path.lexists(file) for file in (self.file, self.folder / DECLARATION)):
            raise UserError(f"{self.folder} is not the directory of an experiment: it has no {DECLARATION}.")
        with locked(self.folder, OTHER, PATIENCE):
            try:
                self.refresh()
                return len(self.events), None
            except DamagedError:
                pass
            with explained(self.folder):
                contents = read_regular(self.file) if os.path.lexists(self.file) else b""
                aside = next(path for n in count(1) if not os.path.lexists(path := self.folder / f"damaged-{n}"))
                (aside / "data").mkdir(parents=True)
                if contents:
                    write_durably(aside / self.file.name, contents)
                for line, file in self.stored().items():
                    if line > len(self.events):
                        os.replace(file, aside / "data" / file.name)
                write_durably(self.file, contents[: self._read_to])
                sync_folder(self.folder)
            return len(self.events), aside

    def _verify_declaration(self, digest: str) -> None:
        try:
            read_verified(self.folder / DECLARATION, digest, "restore it from a copy")
        except DamagedError as error:
            raise UserError(str(error)) from error  # no line can be cut off to mend this

    def _unread(self) -> bytes:
        try:
            contents = read_regular(self.file)
        except FileNotFoundError:
            contents = b""
        except OSError as error:
            raise UserError(f"{self.file} cannot be read: {error.strerror}.") from error
        if len(contents) < self._read_to:
            raise UserError(f"{self.file} has become shorter while it was in use; load the experiment again.")
        return contents[self._read_to :]

    def _write(self, line: int, recording: Recording) -> dict[str, str]:
        """Write the data of a line; the file's checksum by its name."""
        name = f"data/{line:04d}.npz"
        file = self.folder / name
        if not file.parent.exists():
            file.parent.mkdir()
            sync_folder(self.folder)
        arrays: dict[str, Any] = {
            "states": np.concatenate(recording.states),
            "controls": np.concatenate(recording.controls),
            "lengths": np.array([len(piece) for piece in recording.controls]),
        }
        buffer = BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_durably(file, buffer.getvalue())
        sync_folder(file.parent)
        return {name: checksum(buffer.getvalue())}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """An error of the disk as a sentence."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror or error}; everything that was told before is kept."
        ) from error

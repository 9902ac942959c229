"""What an experiment leaves on disk. The journal is the truth; all else follows from it or is named in it.

    experiment.yaml       the declaration, every key
    journal.jsonl         one line per call that changed something
    data/0007.npz         the trajectories that line 7 brought
    model-….safetensors   fitted models; they can be computed again
    lock                  held during a call that writes

A line is written when its arrays are safe on disk, and a call returns when its line is. So a process that is killed
at any moment loses nothing that was returned; half a line at the end was not, and is dropped. Two processes may work
on one experiment: calls wait for each other, and each begins by reading what the other has added.
"""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from distpaml.ask_tell.recordings import Recording
from distpaml.durable_io import append_durably, locked, sync_folder, write_durably
from distpaml.errors import UserError

OTHER, PATIENCE = "Another process", 60.0
"""Whom calls wait for, and how many seconds."""

Value = float | int | str


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
        self._read_to = 0  # bytes

    @property
    def file(self) -> Path:
        return self.folder / "journal.jsonl"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone with an up-to-date journal."""
        with locked(self.folder, OTHER, PATIENCE):
            self.refresh(repair=True)
            yield

    def refresh(self, repair: bool = False) -> None:
        """Read what was added; with `repair`, drop a line that was cut off at the end of the file."""
        try:
            with open(self.file, "rb") as file:
                file.seek(self._read_to)
                contents = file.read()
                shorter = file.seek(0, os.SEEK_END) < self._read_to
        except FileNotFoundError:
            contents, shorter = b"", self._read_to > 0
        except OSError as error:
            raise UserError(f"{self.file} cannot be read: {error.strerror}.") from error
        if shorter:
            raise UserError(f"{self.file} has become shorter while it was in use; load the experiment again.")
        for line in contents.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                if repair:
                    with explained(self.file):
                        os.truncate(self.file, self._read_to)
                return
            try:
                event = _EVENT.validate_json(line)
            except ValidationError as error:
                number = len(self.events) + 1
                raise UserError(f"{self.file} is damaged in line {number}: {error.errors()[0]['msg']}.") from error
            self.events.append(event)
            self._read_to += len(line)

    def append(self, event: Event, recording: Recording | None = None) -> None:
        """Keep an event with its data; when this returns they will survive whatever comes."""
        line = event.model_dump_json().encode() + b"\n"
        with explained(self.folder):
            if recording is not None:
                self._write(len(self.events) + 1, recording)
            append_durably(self.file, line)
        self.events.append(event)
        self._read_to += len(line)

    def recording(self, line: int) -> Recording:
        """The trajectories that a line of the journal, counted from 1, brought."""
        file = self._data(line)
        try:
            with np.load(file, allow_pickle=False) as arrays:
                states, controls, lengths = (arrays[name] for name in ("states", "controls", "lengths"))
            cuts = np.cumsum(lengths)[:-1]
            return Recording(
                tuple(np.split(states, cuts + np.arange(1, len(lengths)))), tuple(np.split(controls, cuts))
            )
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror or error}.") from error
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(f"{file} is damaged: {' '.join(str(error).split())}.") from error

    def _data(self, line: int) -> Path:
        return self.folder / "data" / f"{line:04d}.npz"

    def _write(self, line: int, recording: Recording) -> None:
        file = self._data(line)
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


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """An error of the disk as a sentence."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror or error}; everything that was told before is kept."
        ) from error

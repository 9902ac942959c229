"""Where an experiment lives: a directory with its declaration and its journal, made once and opened again and again."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.journal import DECLARATION, OTHER, PATIENCE, Event, Journal, explained
from distpaml.ask_tell.learning import LearningFile
from distpaml.ask_tell.recordings import Recording
from distpaml.ask_tell.space import Space, settled
from distpaml.ask_tell.state import State, Task
from distpaml.ask_tell.status import Status
from distpaml.durable_io import locked, read_regular, sync_folder, write_durably
from distpaml.errors import UserError


class ExperimentFolder:
    """An experiment in a directory, new or begun: what was told, and what follows from it."""

    def __init__(
        self, declaration: Declaration | Mapping[str, Any] | str | PathLike[str], directory: str | PathLike[str]
    ) -> None:
        folder = Path(directory)
        wanted = Declaration.of(declaration)
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            sync_folder(folder.parent)
        with locked(folder, OTHER, PATIENCE):
            kept = _read(folder)
            wanted = settled(wanted, kept)
            if kept is None:
                _must_be_empty(folder)
                _try_out(wanted)
                with explained(folder):
                    write_durably(folder / DECLARATION, wanted.to_yaml().encode())
                    sync_folder(folder)
            elif kept != wanted:
                key = next(name for name, value in kept if value != getattr(wanted, name))
                raise UserError(
                    f"{folder} holds another experiment: {key} is different there; choose another directory."
                )
        self._open(folder, wanted)

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> Self:
        """The experiment in a directory."""
        folder = Path(directory)
        declaration = _read(folder)
        if declaration is None:
            raise UserError(f"{folder} is not the directory of an experiment: it has no {DECLARATION}.")
        self = cls.__new__(cls)
        self._open(folder, declaration)
        return self

    def __repr__(self) -> str:
        return f"<Experiment {self.declaration.name} in {self.directory}: {self.status().worded()}>"

    def _open(self, folder: Path, declaration: Declaration) -> None:
        self.directory, self.declaration = folder, declaration
        self.space = Space(declaration)
        self._journal, self._state, self._learning = Journal(folder), State(), LearningFile(folder)
        self._catch_up()

    def status(self) -> Status:
        """Where the experiment stands; nothing is locked or changed."""
        state = self._now()
        return Status(
            self.declaration, tuple(state.tasks.values()), self._choosing(state), self._learning.curve(state.data)
        )

    def recordings(self, id: int) -> list[Recording]:
        """What was told of a task, in the model's units."""
        return [self._journal.recording(line) for line in self._task(id, self._now()).lines]

    def history(self) -> tuple[Event, ...]:
        """Every line of the journal."""
        self._catch_up()
        return tuple(self._journal.events)

    def save(self, directory: str | PathLike[str]) -> None:
        """A copy in another directory, which must be new or empty. This one needs no saving."""
        target = Path(directory)
        if target.resolve() == self.directory.resolve():
            return
        with self._writing(), explained(target):
            target.mkdir(parents=True, exist_ok=True)
            with locked(target, OTHER, PATIENCE):
                _must_be_empty(target)
                for file in [*self._journal.stored().values(), *self.directory.glob("model-*.safetensors")]:
                    copy = target / file.relative_to(self.directory)
                    copy.parent.mkdir(exist_ok=True)
                    write_durably(copy, file.read_bytes())
                for file in (self._learning.file, self._journal.file):
                    if file.exists():
                        write_durably(target / file.name, file.read_bytes())
                shutil.copymode(self.directory, target)
                write_durably(target / DECLARATION, (self.directory / DECLARATION).read_bytes())
                for folder in (target / "data", target, target.parent):
                    if folder.exists():
                        sync_folder(folder)

    @contextmanager
    def _writing(self) -> Iterator[State]:
        with self._journal.writing():
            self._catch_up(refresh=False)
            yield self._state

    def _now(self) -> State:
        self._catch_up()
        return self._state

    def _append(self, event: Event, recording: Recording | None = None) -> None:
        self._journal.append(event, recording)
        self._catch_up(refresh=False)

    def _catch_up(self, refresh: bool = True) -> None:
        if refresh:
            self._journal.refresh()
        self._state.apply(self._journal.events[self._state.lines :])

    def _choosing(self, state: State) -> bool:
        return len(state.order) >= self.declaration.initial

    def _task(self, id: int, state: State) -> Task:
        if isinstance(id, bool) or not isinstance(id, int) or id not in state.tasks:
            out = [str(task.id) for task in state.tasks.values() if task.state == "out"]
            hint = f"those that are out are {', '.join(out)}" if out else "none is out; ask first"
            raise UserError(f"There is no task {id!r}; {hint}.")
        return state.tasks[id]


def _read(folder: Path) -> Declaration | None:
    file = folder / DECLARATION
    try:
        return Declaration.from_yaml(read_regular(file).decode(), str(file))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}.") from error


def _must_be_empty(folder: Path) -> None:
    others = [file.name for file in folder.iterdir() if file.name != "lock"]
    if others:
        raise UserError(f"{folder} is not empty: it has {min(others)}; choose a new directory for an experiment.")


def _try_out(declaration: Declaration) -> None:
    """Find out now what would go wrong at the first ask."""
    from distpaml.select.utilities import get_utility

    space = Space(declaration)
    space.encode(space.candidates[:1])
    space.costs()
    space.targeted()
    get_utility(declaration.selection.utility)

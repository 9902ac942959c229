"""Ask for tasks and tell what happened.

    experiment = Experiment("arm.yaml", "arm")           or Experiment.load("arm")
    task, = experiment.ask()                             task.id, task.descriptor
    experiment.tell(task.id, "run-1.csv")                or experiment.fail(task.id, "a screw came loose")

Whatever a call returns is safe on disk, and every answer is a function of what is there: an experiment that is loaded
anew between any two calls goes on as one that never was. A constraint, a cost or a utility of one's own is code, which
the directory does not hold: it has to stay the same.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from distpaml.ask_tell import choice
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.forecasts import Forecast, Inferred, embeddings_table, rows_of, values_of
from distpaml.ask_tell.journal import (
    DECLARATION,
    OTHER,
    PATIENCE,
    Ask,
    Asked,
    Attach,
    Event,
    Fail,
    Journal,
    Tell,
    explained,
)
from distpaml.ask_tell.recordings import Recording, record
from distpaml.ask_tell.space import Space, settled
from distpaml.ask_tell.state import State, Task
from distpaml.durable_io import locked, sync_folder, write_durably
from distpaml.errors import UserError
from distpaml.types import Array

if TYPE_CHECKING:  # they load torch or pandas, which only models need
    from pandas import DataFrame

    from distpaml.ask_tell.models import Models
    from distpaml.model.meta_model import MetaModel
    from distpaml.model.posterior import Latents

MOST = 1000
"""Tasks that can be asked for at once."""


@dataclass(frozen=True)
class Status:
    """Where an experiment stands."""

    declaration: Declaration
    tasks: tuple[Task, ...]
    choosing: bool
    """Whether a model chooses already."""

    def count(self, state: str) -> int:
        return sum(task.state == state for task in self.tasks)

    @property
    def transitions(self) -> int:
        return sum(task.transitions for task in self.tasks)

    def worded(self) -> str:
        """In a few words."""
        counts = ", ".join(f"{self.count(state)} {state}" for state in ("observed", "out", "failed"))
        return f"{counts}, {self.transitions} transitions"


class Experiment:
    """An experiment in a directory, new or begun."""

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
        self._journal, self._state = Journal(folder), State()
        self._catch_up()

    def ask(self, n: int = 1) -> list[Asked]:
        """The next n tasks to try, fewer if there are not so many left; those that are out already are counted in."""
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST:
            raise UserError(f"One can ask for 1 to {MOST} tasks at once, not for {n!r}.")
        with self._writing() as state:
            fitted = self._models.wanted(state) if self._choosing(state) else None
            if fitted is None:
                tasks = choice.spread(self.space, state, n, self.declaration.selection.retry_after)
            else:
                from distpaml.ask_tell.models import threads
                from distpaml.ask_tell.ranking import best

                model, data = self._models.get(fitted, state), self._models.dataset(fitted.data, state)
                with threads(self.declaration.threads):
                    tasks = best(self.declaration, self.space, state, model, data, n)
            if not tasks:
                raise UserError(
                    f"There is nothing left to ask for: each of the {len(self.space.candidates)} descriptors is out or "
                    "observed."
                )
            self._append(Ask(tasks=tuple(tasks), model=fitted.name if fitted else None))
            if fitted is not None:
                self._models.forget_others(fitted)
        return tasks

    def tell(self, id: int, trajectory: Any) -> Tell:
        """What was observed of a task: a file, a mapping of columns, a data frame, or a list of such.

        A task that was told already gets one more trajectory; a failed one comes to life again.
        """
        recording = record(trajectory, self.declaration)
        with self._writing() as state:
            self._task(id, state)
            event = Tell(id=id, transitions=recording.transitions, notes=recording.notes)
            self._append(event, recording)
        return event

    def attach(self, descriptor: Mapping[str, Any], trajectory: Any) -> Attach:
        """A task that nobody asked for, with what was observed of it. Constraints do not matter: it has been done."""
        described = self.space.check(descriptor)
        recording = record(trajectory, self.declaration)
        with self._writing() as state:
            event = Attach(
                id=state.next_id, descriptor=described, transitions=recording.transitions, notes=recording.notes
            )
            self._append(event, recording)
        return event

    def fail(self, id: int, reason: str) -> Fail:
        """A task could not be tried, and is not asked again at once. What was told of it, if anything, is withdrawn."""
        if not isinstance(reason, str) or not reason.strip():
            raise UserError("Please say why the task failed, in a few words.")
        with self._writing() as state:
            task = self._task(id, state)
            if task.state == "failed":
                raise UserError(f"Task {id} has failed already: {task.reason}.")
            event = Fail(id=id, reason=" ".join(reason.split()).rstrip("."))
            self._append(event)
        return event

    def predict(self, task: Any, controls: Any = None, start: Any = None, samples: int = 100) -> Forecast:
        """Where `controls` [T, U] lead from the state `start` [D], in declared units, by sampled rollouts.

        `task` is a descriptor, the number of an observed task, a latent, or a trajectory from which the latent is
        inferred. What is not given is taken from the trajectory, from the task's first one, or from the newest one
        there is: the same controls from the same start. Controls that are given go on from the end of a trajectory.
        """
        states = self.rollout(task, controls, start, samples)
        return Forecast(states.mean(axis=0), states.std(axis=0), self.declaration.states, self.declaration.dt)

    def rollout(self, task: Any, controls: Any = None, start: Any = None, samples: int = 100) -> Array:
        """The sampled trajectories [S, T + 1, D] behind `predict`, in declared units."""
        from distpaml.ask_tell import predictions

        d = self.declaration
        scale = np.array([d.scale(name) for name in d.states])
        signal = None if controls is None else rows_of(controls, d.controls, "controls")
        begin = None if start is None else values_of(start, d.states, "start") * scale
        given = isinstance(task, int | Inferred) or self._is_descriptor(task)
        recording = None if given else record(task, d)
        with self._writing() as state:
            model = self._model(state)
            latents = self._latents(task, recording, model, state)
            line = state.tasks[task if isinstance(task, int) else state.order[-1]].lines[0]
            like = recording or self._journal.recording(line)
            if begin is None:
                begin = like.states[0][0] if signal is None or recording is None else like.states[-1][-1]
            signal = like.controls[0] if signal is None else signal
            return predictions.trajectories(model, latents, begin, signal, d, samples) / scale

    def infer(self, trajectory: Any, descriptor: Mapping[str, Any] | None = None) -> Inferred:
        """q(h) of a task from a trajectory, and from its descriptor if that is given."""
        from distpaml.ask_tell import predictions

        recording = record(trajectory, self.declaration)
        encoded = None if descriptor is None else self.space.encode([self.space.check(descriptor)])[0]
        with self._writing() as state:
            latents = predictions.of_recording(self._model(state), recording, self.declaration, encoded)
        return Inferred(latents.mean[0].numpy(), latents.variance[0].numpy())

    @property
    def embeddings(self) -> "DataFrame":
        """q(h) of the observed tasks, a row each: the descriptor, means h1, h2, … and standard deviations."""
        with self._writing() as state:
            latents = self._model(state).embeddings
            return embeddings_table(latents, [{"task": id, **state.tasks[id].descriptor} for id in state.order])

    def status(self) -> Status:
        """Where the experiment stands; nothing is locked or changed."""
        self._catch_up()
        return Status(self.declaration, tuple(self._state.tasks.values()), self._choosing(self._state))

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
                for file in [*self.directory.glob("data/[0-9]*.npz"), *self.directory.glob("model-*.safetensors")]:
                    copy = target / file.relative_to(self.directory)
                    copy.parent.mkdir(exist_ok=True)
                    write_durably(copy, file.read_bytes())
                if self._journal.file.exists():
                    write_durably(target / self._journal.file.name, self._journal.file.read_bytes())
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

    @cached_property
    def _models(self) -> "Models":
        from distpaml.ask_tell.models import Models

        return Models(self.declaration, self.space, self._journal)

    def _model(self, state: State) -> "MetaModel":
        if not state.order:
            raise UserError("Nothing has been observed yet, so there is no model.")
        return self._models.get(self._models.wanted(state), state)

    def _is_descriptor(self, task: Any) -> bool:
        return isinstance(task, Mapping) and not set(self.declaration.states) & set(task)

    def _latents(self, task: Any, recording: Recording | None, model: "MetaModel", state: State) -> "Latents":
        from distpaml.ask_tell import predictions

        if recording is not None:
            return predictions.of_recording(model, recording, self.declaration, None)
        if isinstance(task, Inferred):
            return predictions.of_latent(model, task)
        if isinstance(task, int):
            if self._task(task, state).state != "observed":
                raise UserError(f"Task {task} has not been observed; give its descriptor instead.")
            return predictions.of_observed(model, state.order.index(task))
        return predictions.of_descriptor(model, self.space.encode([self.space.check(task)])[0])


def _read(folder: Path) -> Declaration | None:
    file = folder / DECLARATION
    try:
        return Declaration.from_yaml(file.read_text(encoding="utf-8"), str(file))
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

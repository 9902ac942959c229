"""Ask for tasks and tell what happened.

    experiment = Experiment("arm.yaml", "arm")           or Experiment.load("arm")
    task, = experiment.ask()                             task.id, task.descriptor
    experiment.tell(task.id, "run-1.csv")                or experiment.fail(task.id, "a screw came loose")

Whatever a call returns is safe on disk, and every answer is a function of what is there: an experiment that is loaded
anew between any two calls goes on as one that never was. A constraint, a cost or a utility of one's own is code, which
the directory does not hold: it has to stay the same.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from distpaml.ask_tell import choice
from distpaml.ask_tell.folder import ExperimentFolder
from distpaml.ask_tell.forecasts import Forecast, Inferred, embeddings_table, rows_of, values_of
from distpaml.ask_tell.journal import Ask, Asked, Attach, Fail, Tell
from distpaml.ask_tell.learning import LearningCurve
from distpaml.ask_tell.recordings import Recording, record
from distpaml.ask_tell.state import State
from distpaml.errors import UserError
from distpaml.types import Array

if TYPE_CHECKING:  # they load torch or pandas, which only models need
    from pandas import DataFrame

    from distpaml.ask_tell.models import Models
    from distpaml.ask_tell.ranking import Preview, Ranking
    from distpaml.model.meta_model import MetaModel
    from distpaml.model.posterior import Latents

MOST = 1000
"""Tasks that can be asked for at once."""
LEARNT_AT_ASK = 40
"""Most tasks whose errors an ask computes; for more it would take longer than the fit."""


class Experiment(ExperimentFolder):
    """An experiment in a directory, new or begun."""

    def ask(self, n: int = 1) -> list[Asked]:
        """The next n tasks to try, fewer if there are not so many left; those that are out already are counted in."""
        _check_number(n)
        with self._writing() as state:
            fitted = self._models.wanted(state) if self._choosing(state) else None
            if fitted is None:
                tasks = choice.spread(self.space, state, n, self.declaration.selection.retry_after)
            else:
                tasks = self._ranking(state).best(n)
                if len(state.data) <= LEARNT_AT_ASK:
                    self._learn(len(state.data), state)
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

        A task that was told already gets one more trajectory; a failed one counts as observed, by this trajectory.
        """
        recording = record(trajectory, self.declaration)
        with self._writing() as state:
            self._task(id, state)
            event = Tell(id=id, transitions=recording.transitions, notes=recording.notes)
            self._append(event, recording)
        return event

    def attach(self, descriptor: Mapping[str, Any], trajectory: Any) -> Attach:
        """A task that nobody asked for, with what was observed of it.

        It has been done, so neither constraints nor the declared ranges matter; a note says if it lies outside.
        """
        described = self.space.check(descriptor, anywhere=True)
        recording = record(trajectory, self.declaration)
        notes = (*self.space.outside(described), *recording.notes)
        with self._writing() as state:
            event = Attach(id=state.next_id, descriptor=described, transitions=recording.transitions, notes=notes)
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

    def preview(self, n: int = 1) -> "Preview":
        """What `ask` would answer now and why; nothing is asked for."""
        from distpaml.ask_tell.ranking import Preview

        _check_number(n)
        with self._writing() as state:
            if not self._choosing(state):
                return Preview(tuple(choice.spread(self.space, state, n, self.declaration.selection.retry_after)))
            return self._ranking(state).preview(n)

    def learning(self, watch: Callable[[int, int], None] = lambda tasks, of: None) -> LearningCurve | None:
        """Errors of left-out tasks against the number of tasks, None below three; see `distpaml.ask_tell.learning`.

        What is missing is computed, a fit and some seconds for each point of the curve, and kept. `watch` is called
        with the number of tasks of each, and with that of all tasks.
        """
        data = self._now().data
        for tasks in self._learning.missing(data):
            watch(tasks, len(data))
            with self._writing() as state:
                self._learn(tasks, state)
        return self._learning.curve(self._now().data)

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
        task = int(task) if isinstance(task, np.integer) else task  # as from the index of `embeddings`
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

    @cached_property
    def _models(self) -> "Models":
        from distpaml.ask_tell.models import Models

        return Models(self.declaration, self.space, self._journal)

    def _ranking(self, state: State) -> "Ranking":
        from distpaml.ask_tell.ranking import Ranking

        fitted = self._models.wanted(state)
        data = self._models.dataset(fitted.data, state)
        return Ranking(self.declaration, self.space, state, self._models.get(fitted, state), data)

    def _learn(self, tasks: int, state: State) -> None:
        """Compute the errors of the first tasks, each left out, unless they are known or cannot be computed."""
        from distpaml.ask_tell.leave_one_out import learning_point
        from distpaml.ask_tell.models import threads

        data = state.data[:tasks]
        if tasks not in self._learning.missing(state.data):
            return
        try:
            model = self._model(state) if data == state.data else self._models.fitted_to(data, state)
            with threads(self.declaration.threads):
                point = learning_point(model, self._models.dataset(data, state), data)
        except UserError:  # no model fits
            return
        self._learning.add(point, state.data)

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


def _check_number(n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST:
        raise UserError(f"One can ask for 1 to {MOST} tasks at once, not for {n!r}.")

"""A trained model as its user sees it: raw units in and out, everything by name.

The verbs are those of ask and tell's `Experiment`. Angles, controls, their limits and names come from the domain.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from distpaml import seeds
from distpaml.ask_tell import predictions
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.forecasts import Forecast, Inferred, embeddings_table, rows_of, values_of
from distpaml.ask_tell.recordings import record
from distpaml.config import ExperimentConfig
from distpaml.data.tasks import TaskSet
from distpaml.domains.signals import control_range
from distpaml.errors import UserError
from distpaml.model.meta_model import MetaModel
from distpaml.model.posterior import Latents
from distpaml.names import nearest
from distpaml.runtime.local import LocalSimulator
from distpaml.select.candidates import descriptor_pool
from distpaml.types import Array

if TYPE_CHECKING:
    from pandas import DataFrame


class TrainedModel:
    """The model of one round of a run; `meta_model` is the model itself, in the program's own terms."""

    def __init__(self, config: ExperimentConfig, meta_model: MetaModel, tasks: Sequence[Sequence[float]]) -> None:
        self.config, self.meta_model, self.tasks = config, meta_model, tasks
        self.domain = config.domain.make()
        self.descriptor = TaskSet(config).descriptor
        self.states, self.controls, self.dt = self.domain.states, self.domain.controls, self.domain.dt

    @property
    def embeddings(self) -> "DataFrame":
        """q(h) of the tasks it was fitted to, a row each: parameters, means h1, h2, … and standard deviations."""
        named = [
            {"task": number, **dict(zip(self.config.domain.box, task, strict=True))}
            for number, task in enumerate(self.tasks)
        ]
        return embeddings_table(self.meta_model.embeddings, named)

    def infer(self, trajectory: Any, descriptor: Mapping[str, float] | None = None) -> Inferred:
        """q(h) of a new task from a trajectory (a file, a mapping of columns, a data frame, or a list of such), and
        from its descriptor if that is given."""
        encoded = None if descriptor is None else self._encoded(descriptor)
        latents = predictions.of_recording(self.meta_model, record(trajectory, self._columns), self._columns, encoded)
        return Inferred(latents.mean[0].numpy(), latents.variance[0].numpy())

    def predict(self, task: Any, controls: Any = None, start: Any = None, samples: int = 100) -> Forecast:
        """Where `controls` lead from the state `start`: mean and standard deviation of sampled rollouts.

        `task` is a descriptor such as `{"pole_mass": 1.0, "pole_length": 0.5}`, the number of a task in `embeddings`, a
        latent (what `infer` returns, or its Q numbers), or a trajectory, at whose end the forecast begins. Otherwise it
        begins where the domain does. Controls are columns by name, rows, or the values of the only control; the
        experiment's own signal unless given.
        """
        states = self.rollout(task, controls, start, samples)
        return Forecast(states.mean(axis=0), states.std(axis=0), self.states, self.dt)

    def rollout(self, task: Any, controls: Any = None, start: Any = None, samples: int = 100, seed: int = 0) -> Array:
        """The sampled trajectories [samples, T + 1, states] behind `predict`."""
        signal = self.signal if controls is None else rows_of(controls, self.controls, "controls")
        begin = self.start(task, seed) if start is None else values_of(start, self.states, "start")
        columns = self._columns.model_copy(update={"seed": seed})
        return predictions.trajectories(self.meta_model, self.latents(task), begin, signal, columns, samples)

    def start(self, task: Any, seed: int = 0) -> Array:
        """The last state of `task` if that is a trajectory, else a start of the domain."""
        if self._is_trajectory(task):
            return record(task, self._columns).states[-1][-1]
        return self.domain.start(seeds.rng(seed, "start"))

    @cached_property
    def signal(self) -> Array:
        """The controls [T, U] of the experiment."""
        return LocalSimulator(self.config).signal

    @cached_property
    def limits(self) -> dict[str, tuple[float, float]]:
        """The interval of every control."""
        signal, limit = self.config.domain.signal.signal(), self.config.domain.control_limit
        return {name: control_range(self.domain, signal, name, limit) for name in self.controls}

    @property
    def angle_places(self) -> list[int]:
        """Where the angles are among the states."""
        return self._columns.angle_places

    def latents(self, task: Any) -> Latents:
        """q(h) of whatever names a task."""
        if isinstance(task, Inferred):
            return predictions.of_latent(self.meta_model, task)
        if isinstance(task, int | np.integer) and not isinstance(task, bool):
            if not 0 <= task < len(self.tasks):
                raise UserError(f"There is no task {task}; they are numbered from 0 to {len(self.tasks) - 1}.")
            return predictions.of_observed(self.meta_model, int(task))
        if self._is_trajectory(task):
            return predictions.of_recording(self.meta_model, record(task, self._columns), self._columns, None)
        if isinstance(task, Mapping):
            return self._described(self._encoded(task))
        try:
            h = np.asarray(task, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise UserError(f"A task is a descriptor, a number, a latent or a trajectory, not {task!r}.") from None
        return predictions.of_latent(self.meta_model, Inferred(h, np.zeros_like(h)))

    def _is_trajectory(self, task: Any) -> bool:
        if isinstance(task, list | tuple):
            return bool(task) and self._is_trajectory(task[0])
        if isinstance(task, Mapping) or hasattr(task, "columns"):
            return hasattr(task, "columns") or bool(set(self.states) & set(task))
        return isinstance(task, str | PathLike)

    def _encoded(self, descriptor: Mapping[str, float]) -> Array:
        """The numbers [E] of a descriptor; superfluous ones are neutral unless given."""
        names = self.descriptor.names
        for name in descriptor:
            if name not in names:
                raise UserError(f"There is no descriptor {name}{nearest(name, names)}.")
        neutral = dict.fromkeys(self.config.descriptor.superfluous, self.config.descriptor.neutral)
        return values_of({**neutral, **descriptor}, names, "The descriptor")

    def _described(self, encoded: Array) -> Latents:
        found = descriptor_pool(self.meta_model, self.descriptor.low, self.descriptor.high, encoded[None])
        like = self.meta_model.embeddings.mean
        return Latents(like.new_tensor(found.mean), like.new_tensor(found.variance))

    @cached_property
    def _columns(self) -> Declaration:
        """How recordings are read; a prefix keeps parameters apart from states of the same name."""
        return Declaration(
            descriptors={f"task.{name}": interval for name, interval in self.descriptor.box.items()},  # type: ignore[misc]
            states=self.states,
            controls=self.controls,
            angles=self.domain.angles,
            dt=self.dt,
            outliers="keep",
            threads=self.config.runtime.threads,
        )

    def __repr__(self) -> str:
        states, controls, names = (", ".join(part) for part in (self.states, self.controls, self.descriptor.names))
        return (
            f"<TrainedModel of {self.config.name}: states {states}; controls {controls}; dt {self.dt:g} s; "
            f"{len(self.tasks)} tasks by {names}>"
        )

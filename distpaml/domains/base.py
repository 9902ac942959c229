"""What a task domain is: a family of systems indexed by a few physical parameters.

A domain of one's own is one subclass of `Domain` in one file, named on the command line as `module:Class`;
`distpaml.domains.check_domain` tries the whole contract on it. Systems that MuJoCo simulates derive from
`distpaml.domains.mujoco.MujocoDomain`, which has the batched simulation and asks only for a model per task.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from distpaml.errors import UserError
from distpaml.types import Array


class Domain(ABC):
    """A family of systems. Class attributes are the paper's values; an experiment's config may override the
    box, the length of a trajectory and the control signal."""

    name: ClassVar[str]
    box: ClassVar[Mapping[str, tuple[float, float]]]
    """Task parameters in order, each with the interval that tasks are drawn from."""
    states: ClassVar[tuple[str, ...]]
    """Names of the state variables, positions before velocities."""
    angles: ClassVar[tuple[str, ...]] = ()
    """Those states that are angles in radians (unwrapped); the model sees their cosine and sine."""
    dt: ClassVar[float]
    """Seconds between two states; a control is held for as long."""
    trajectory_length: ClassVar[int] = 100
    """States in a trajectory; one fewer transitions."""
    control_limit: ClassVar[float]
    """C of the alternating ramp: controls lie in [-C, C]."""
    alternations: ClassVar[int]
    """How often the control changes its sign within a trajectory, plus one."""
    units: ClassVar[Mapping[str, str]] = {}
    """Units of task parameters, states and controls by name, for the axes of figures."""
    controls: ClassVar[tuple[str, ...]] = ("control",)
    """Names of the controls."""
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Intervals of controls that have their own; others have [-C, C]."""
    control_noise: ClassVar[float | None] = 1.0
    """Standard deviation of the noise on the ramp; None: a tenth of half the interval of each control."""
    discrete_controls: ClassVar[bool] = False
    """Whether controls are whole numbers."""
    variants: ClassVar[tuple[str, ...]] = ("paper",)
    """Ways to read the paper that this domain knows; the first is the default."""

    def __init__(self, variant: str = "paper") -> None:
        if variant not in self.variants:
            raise UserError(f"{self.name} has no variant {variant!r}; it knows {', '.join(self.variants)}.")
        self.variant = variant

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Array:
        """A start state [S]."""

    @abstractmethod
    def simulate(self, tasks: Array, starts: Array, controls: Array, threads: int = 1) -> Array:
        """States [N, T, S] of N tasks [N, P] from `starts` [N, S] under `controls` [N, T - 1, U].

        Pure: the same task, start and controls give the same trajectory to the last bit, whatever else is in
        the batch. A simulation that diverges raises `SimulationError`, which names the task.
        """

    def describe(self, task: Array) -> str:
        """The task's parameters by name: "pole_mass=0.5, pole_length=2"."""
        return ", ".join(f"{name}={value:g}" for name, value in zip(self.box, task, strict=True))

    def look(self, states: Array, task: Array) -> Array | None:
        """What states [..., S] of a task look like: points of a line [..., J, 2] in metres; None if it has no looks."""
        return None

    def checked(self, tasks: ArrayLike, starts: ArrayLike, controls: ArrayLike) -> tuple[Array, Array, Array]:
        """The arguments of `simulate` as new float64 arrays, or a ValueError that says what is wrong."""
        tasks = self.checked_tasks(tasks)
        starts, controls = np.array(starts, np.float64), np.array(controls, np.float64)
        if starts.shape != (len(tasks), len(self.states)):
            raise ValueError(
                f"{self.name}: starts must have shape [{len(tasks)}, {len(self.states)}], one row "
                f"({', '.join(self.states)}) per task, not {list(starts.shape)}."
            )
        if controls.ndim != 3 or controls.shape[::2] != (len(tasks), len(self.controls)):
            raise ValueError(
                f"{self.name}: controls must have shape [{len(tasks)}, T - 1, {len(self.controls)}], one signal per "
                f"task, not {list(controls.shape)}."
            )
        for what, values in (("starts", starts), ("controls", controls)):
            if not np.isfinite(values).all():
                raise ValueError(f"{self.name}: {what} must be finite; row {_first_bad_row(values)} is not.")
        return tasks, starts, controls

    def checked_tasks(self, tasks: ArrayLike) -> Array:
        """Tasks [N, P] as a new float64 array. A parameter with a positive interval must itself be positive,
        inside the interval or not: it is a mass or a length."""
        tasks = np.array(tasks, np.float64)
        if tasks.ndim != 2 or tasks.shape[1] != len(self.box):
            raise ValueError(
                f"{self.name}: tasks must have shape [N, {len(self.box)}], one row ({', '.join(self.box)}) "
                f"per task, not {list(tasks.shape)}."
            )
        for (name, (low, _)), values in zip(self.box.items(), tasks.T, strict=True):
            for row, value in enumerate(values):
                if not np.isfinite(value) or (low > 0 and value <= 0):
                    wanted = "positive and finite" if low > 0 else "finite"
                    raise ValueError(f"{self.name}: {name} must be {wanted}, but is {value:g} in task {row}.")
        return tasks


def _first_bad_row(values: Array) -> int:
    return int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))


class SimulationError(RuntimeError):
    """A simulation diverged or gave numbers that are not finite; the message names the task."""

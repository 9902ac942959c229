"""What a task domain is: a family of systems indexed by a few physical parameters.

A domain of one's own is one subclass of `Domain` in one file, named on the command line as `module:Class`;
`distpaml.domains.check_domain` tries the whole contract on it. Systems that MuJoCo simulates derive from
`distpaml.domains.mujoco.MujocoDomain`, which has the batched simulation and asks only for a model per task.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Domain(ABC):
    """A family of systems. Class attributes are the paper's values; an experiment's config may override the
    box, the number of steps and the control signal."""

    name: ClassVar[str]
    box: ClassVar[Mapping[str, tuple[float, float]]]
    """Task parameters in order, each with the interval that tasks are drawn from."""
    states: ClassVar[tuple[str, ...]]
    """Names of the state variables, positions before velocities."""
    angles: ClassVar[tuple[str, ...]] = ()
    """Those states that are angles in radians (unwrapped); the model sees their cosine and sine."""
    dt: ClassVar[float]
    """Seconds between two states, and the integrator's step."""
    steps: ClassVar[int] = 100
    """States in a trajectory; one fewer transitions."""
    control_limit: ClassVar[float]
    """C of the alternating ramp: controls lie in [-C, C]."""
    alternations: ClassVar[int]
    """How often the control changes its sign within a trajectory, plus one."""
    readings: ClassVar[tuple[str, ...]] = ("text",)
    """Ways to read the paper that this domain knows; the first is the default."""

    def __init__(self, reading: str = "text") -> None:
        self.reading = reading

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Array:
        """A start state [S]."""

    @abstractmethod
    def simulate(self, tasks: Array, starts: Array, controls: Array, threads: int = 1) -> Array:
        """States [N, T, S] of N tasks [N, P] from `starts` [N, S] under `controls` [N, T - 1, 1].

        Pure: the same task, start and controls give the same trajectory to the last bit, whatever else is in
        the batch. A simulation that diverges raises `SimulationError`, which names the task.
        """


class SimulationError(RuntimeError):
    """A simulation left the realm of numbers; the message names the task."""

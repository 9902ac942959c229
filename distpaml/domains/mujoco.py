"""Domains that MuJoCo simulates: a model per task, all tasks of a batch in one call.

A subclass gives `spec(task)`; everything else is here. Every task has a model compiled afresh, because
editing a compiled model leaves its derived constants (inertias, invariants) behind without a word.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from distpaml.domains.base import Domain, SimulationError
from distpaml.domains.stick_figure import StickFigure
from distpaml.types import Array

if TYPE_CHECKING:
    from mujoco import MjModel, MjSpec

HUGE = 1e10
"""MuJoCo's own bound (mjMAXVAL) beyond which a position or velocity is bad."""


class Camera(NamedTuple):
    """A fixed view, along the y-axis unless turned, without perspective: lengths in pixels are in proportion."""

    centre: tuple[float, float, float]
    height: float
    """Metres from the lower to the upper edge of an image."""
    azimuth: float = 90.0
    """Degrees, as of MuJoCo's free camera: 90 looks along y, 180 against x."""
    elevation: float = 0.0
    """Degrees; -90 looks down from above."""


class MujocoDomain(Domain):
    """States are MuJoCo's qpos, qvel and act, unless `observed` takes some of them; controls are the actuators'."""

    camera: ClassVar[Camera | None] = None
    """What sees all of every task's system at rest, if tasks can be described by images."""
    integrator: ClassVar[int] = 1
    """MuJoCo's mjtIntegrator: RK4."""

    @abstractmethod
    def spec(self, task: Array) -> MjSpec:
        """The model of one task [P], visuals included; dt and the integrator are set by `model`."""

    @property
    def substeps(self) -> int:
        """Steps of the integrator within dt; the control is held."""
        return 1

    def model(self, task: Array, visual: bool = True) -> MjModel:
        """The compiled model of one task [P]: with visuals to render it, without them to step it faster.

        The physics is the same to the last bit.
        """
        spec = self.spec(self.checked_tasks([task])[0])
        spec.option.timestep = self.dt / self.substeps
        spec.option.integrator = self.integrator
        if not visual:
            _discard_visuals(spec)
        return spec.compile()

    def simulate(self, tasks: Array, starts: Array, controls: Array, threads: int = 1) -> Array:
        tasks, starts, controls = self.checked(tasks, starts, controls)
        if len(tasks) == 0:
            return np.empty((0, controls.shape[1] + 1, len(self.states)))
        models = [self._to_step(task) for task in tasks]
        whole = self.whole_states(starts), self.whole_controls(controls)
        states, failures = rollout(models, *whole, threads, self.substeps)
        for task, failure in zip(tasks, failures, strict=True):
            if failure:
                raise SimulationError(
                    f"{self.name} with {self.describe(task)} diverged at step {failure} of "
                    f"{controls.shape[1]} (variant {self.variant!r}, dt {self.dt:g} s): take this task out "
                    "of the box, or lower the control limit."
                )
        return self.observed(states)

    @cached_property
    def figure(self) -> StickFigure:
        """How it is drawn."""
        middle = np.array([(low + high) / 2 for low, high in self.box.values()])
        model = self.model(middle)
        start = self.whole_states(self.start(np.random.default_rng(0))[None])[0]
        return StickFigure.of(model, start[: model.nq])

    def look(self, states: Array, task: Array) -> Array | None:
        model = self.model(task)
        positions = self.whole_states(states.reshape(-1, states.shape[-1]))[:, : model.nq]
        points = self.figure.points(model, positions)
        return points.reshape(*states.shape[:-1], *points.shape[1:])

    def _to_step(self, task: Array) -> MjModel:
        try:
            return self.model(task, visual=False)
        except ValueError as error:
            said = " ".join(str(error).split()).rstrip(".")
            raise SimulationError(f"{self.name} with {self.describe(task)} cannot be compiled: {said}.") from error

    def whole_states(self, starts: Array) -> Array:
        """MuJoCo's states [N, nq + nv + na] from those of the domain [N, S]."""
        return starts

    def whole_controls(self, controls: Array) -> Array:
        """Those of all actuators [N, T - 1, nu] from those of the domain [N, T - 1, U]."""
        return controls

    def observed(self, whole: Array) -> Array:
        """The domain's states [N, T, S] among MuJoCo's [N, T, nq + nv + na]."""
        return whole


def rollout(
    models: Sequence[MjModel], starts: Array, controls: Array, threads: int = 1, substeps: int = 1
) -> tuple[Array, list[int]]:
    """States [N, T, S] of N models from `starts` [N, S] under `controls` [N, T - 1, U], each held for
    `substeps` steps of the integrator; and for each trajectory the first step, from 1, that went wrong, or 0.

    MuJoCo resets a bad state, and after a warning its rollout only repeats the last one: time goes back or
    stands still. One step is taken beyond the last so that a warning in the last step shows as well.
    """
    import mujoco
    import mujoco.rollout

    positions, velocities, activations = models[0].nq, models[0].nv, models[0].na
    if starts.shape[1] != positions + velocities + activations:
        raise ValueError(
            f"a domain's states must be MuJoCo's {positions} positions and {velocities} velocities and "
            f"nothing else, but it names {starts.shape[1]} states (activations: {activations})."
        )
    timed_starts = np.pad(starts, ((0, 0), (1, 0)))  # [N, 1 + S]
    held = np.pad(np.repeat(controls, substeps, axis=1), ((0, 0), (0, 1), (0, 0)))  # [N, M + 1, 1]
    workers = [mujoco.MjData(models[0]) for _ in range(max(1, min(threads, len(models))))]
    with _warnings_kept_quiet():
        timed, _ = mujoco.rollout.rollout(models, workers, timed_starts, held)  # [N, M + 1, 1 + S]
    fine, times = timed[:, :-1, 1:], timed[..., 0]
    bad = ~(np.abs(fine) < HUGE).all(axis=2) | (np.diff(times) <= 0)  # [N, M]
    failures = [int(np.argmax(row)) // substeps + 1 if row.any() else 0 for row in bad]
    return np.concatenate([starts[:, None], fine[:, substeps - 1 :: substeps]], axis=1), failures


def _discard_visuals(spec: MjSpec) -> None:
    """Take out what has no part in the dynamics: textures alone cost 80 ms and 12 MB per model."""
    import mujoco

    without_contacts = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    if spec.option.disableflags & without_contacts:
        for geom in spec.geoms:
            geom.contype = geom.conaffinity = 0
    spec.compiler.discardvisual = True
    for element in [*spec.sensors, *spec.cameras, *spec.lights]:
        spec.delete(element)


_handler = Lock()


@contextmanager
def _warnings_kept_quiet() -> Iterator[None]:
    """Keep MuJoCo's warnings off stderr and out of MUJOCO_LOG.TXT in the working folder.

    The handler is the process's, hence the lock; whoever had set one gets it back.
    """
    import mujoco

    with _handler:
        previous = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda message: None)
        try:
            yield
        finally:
            mujoco.set_mju_user_warning(previous)


@cache
def _parsed(name: str) -> MjSpec:
    from importlib.resources import files

    import mujoco

    return mujoco.MjSpec.from_file(str(files("dm_control") / "suite" / f"{name}.xml"))


def suite_spec(name: str) -> MjSpec:
    """A fresh copy of a model of dm_control's suite, whose import would look for a display."""
    return _parsed(name).copy()

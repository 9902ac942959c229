"""A family of systems from a gymnasium environment: attributes of the environment depend on parameters.

    m: {range: [0.5, 2.0], attribute: m}
    length: {range: [0.4, 1.0], sets: {length: length, polemass_length: 0.1 * length}}

A state is the environment's own (`state` of classic control, positions and velocities of MuJoCo), which can be set, so
that a trajectory begins where it should. Environments without one are seen through their observations, and begin as
`reset(seed=0)` to `reset(seed=15)` do. Episodes never end early, and every task has an environment of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from distpaml.domains.base import Domain, SimulationError
from distpaml.domains.environments import (
    DEFAULTS,
    Attributes,
    GymnasiumSettings,
    access_to,
    bare_environment,
    check_attribute,
    label,
    numbered,
    plain,
    quietly,
)
from distpaml.domains.expressions import ExpressionError, evaluate
from distpaml.domains.family import FamilyError, Limits, check_used, control_limit, give
from distpaml.domains.sketch import chain, check_links
from distpaml.domains.vector_environments import has_vector_version, simulate_together
from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.types import Array

RESETS = 16
"""Seeds of `reset` that an environment without a state of its own begins with."""
Values = Mapping[str, float]


class GymnasiumDomain(Domain):
    """The systems that an environment becomes when parameters change its attributes."""

    source = "gymnasium"
    """The key of a config that makes such a family."""

    def __init__(
        self,
        make: str,
        parameters: Mapping[str, Attributes],
        settings: GymnasiumSettings = DEFAULTS,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        give(self, name=name or label(make), box={parameter: given.interval for parameter, given in parameters.items()})
        super().__init__()
        self.make, self.parameters, self.settings, self.options = make, dict(parameters), settings, dict(options or {})
        self._check_expressions()
        try:
            with quietly():
                environment = self.environment(dict.fromkeys(self.box, np.nan), check=True)
                first = environment.reset(seed=0)[0]
        except (FamilyError, ModuleNotFoundError):
            raise
        except Exception as error:  # whatever an environment raises while it is made
            raise FamilyError((self.source,), f"{make} cannot be made: {plain(error)}") from error
        self.access = access_to(environment, settings.observe, (self.source, "observe"))
        size = len(self._seen(environment, first))
        states = self._named(settings.states, size, self._own_names(environment, size), "states")
        give(self, states=states, angles=tuple(self._angles(states)), dt=self._dt(environment))
        self._actions(environment.action_space)
        self._start_values()
        check_links(settings.links, states, self.box)

    def environment(self, values: Values, check: bool = False) -> Any:
        """The environment of a task; with `check` nothing is set, and attributes that it has not are an error."""
        environment = bare_environment(self.make, self.options)
        for name, given in self.parameters.items():
            for attribute, expression in given.sets.items():
                if check:
                    plainly = given.sets == {attribute: name}
                    check_attribute(
                        environment, attribute, ("parameters", name, *(() if plainly else ("sets", attribute)))
                    )
                else:
                    setattr(environment, attribute, evaluate(expression, values))
        return environment

    def start(self, rng: np.random.Generator) -> Array:
        """What `start` says or 0, every state with the noise; one of the resets where there is no state."""
        if self.access == "observation":
            return self._resets[int(rng.integers(RESETS))].copy()
        return self._rest + self.settings.noise * rng.standard_normal(len(self.states))

    def simulate(self, tasks: Array, starts: Array, controls: Array, threads: int = 1) -> Array:
        tasks, starts, controls = self.checked(tasks, starts, controls)
        with quietly():  # gymnasium warns of steps after the end of an episode
            return (
                self._together(tasks, starts, controls) if self._vectorised else self._singly(tasks, starts, controls)
            )

    @property
    def _vectorised(self) -> bool:
        return self.access == "state" and has_vector_version(self.make)

    def _together(self, tasks: Array, starts: Array, controls: Array) -> Array:
        rows = [dict(zip(self.box, task.tolist(), strict=True)) for task in tasks]
        sets = {a: e for given in self.parameters.values() for a, e in given.sets.items()}
        attributes = {a: np.array([evaluate(expression, row) for row in rows]) for a, expression in sets.items()}
        states = simulate_together(self.make, self.options, attributes, starts, controls)
        for task, trajectory in zip(tasks, states, strict=True):
            self._check_finite(trajectory, task)
        return states

    def _singly(self, tasks: Array, starts: Array, controls: Array) -> Array:
        states = np.empty((len(tasks), controls.shape[1] + 1, len(self.states)))
        for task, start, signal, trajectory in zip(tasks, starts, controls, states, strict=True):
            environment = self._of_task(task)
            self._begin(environment, start, task)
            trajectory[0] = start
            for step, control in enumerate(signal, start=1):
                trajectory[step] = self._seen(environment, environment.step(self._action(control))[0])
            self._check_finite(trajectory, task)
        return states

    def _check_finite(self, trajectory: Array, task: Array) -> None:
        finite = np.isfinite(trajectory).all(axis=1)
        if not finite.all():
            raise SimulationError(
                f"{self.name} with {self.describe(task)} diverged at step {finite.argmin()} of {len(trajectory) - 1} "
                f"(dt {self.dt:g} s): take this task out of the box, or lower the control limit."
            )

    def _of_task(self, task: Array) -> Any:
        try:
            return self.environment(dict(zip(self.box, task.tolist(), strict=True)))
        except UserError:
            raise
        except Exception as error:  # whatever an environment raises while it is made
            raise SimulationError(f"{self.name} with {self.describe(task)} cannot be made: {plain(error)}.") from error

    def check(self) -> None:
        """Step both ends of every interval, the others at their middle: what fails, or changes nothing, is an error."""
        from distpaml.domains.signals import default_signals

        if self.control_limit is None:
            return
        middle = np.array([(low + high) / 2 for low, high in self.box.values()])
        rng = np.random.default_rng(0)
        start, controls = self.start(rng), default_signals(self, rng, 30)
        for i, (name, interval) in enumerate(self.box.items()):
            tasks = np.array([np.where(np.arange(len(middle)) == i, end, middle) for end in interval])
            try:
                low, high = self.simulate(tasks, np.stack([start, start]), np.stack([controls, controls]))
            except (SimulationError, UserError) as error:
                raise FamilyError(("parameters", name), str(error).rstrip(".")) from error
            if np.array_equal(low, high):
                raise FamilyError(("parameters", name), f"makes no difference to {self.make}")

    def look(self, states: Array, task: Array) -> Array | None:
        if not self.settings.links:
            return None
        return chain(self.settings.links, self.states, states, dict(zip(self.box, task.tolist(), strict=True)))

    def _begin(self, environment: Any, start: Array, task: Array) -> None:
        if self.access == "observation":
            seeds = np.flatnonzero((self._resets == start).all(axis=1))
            seen = self._seen(environment, environment.reset(seed=int(seeds[0]))[0]) if len(seeds) else None
            if seen is None or not np.array_equal(seen, start):
                raise SimulationError(
                    f"{self.name} with {self.describe(task)} does not begin in the state that is asked for: it begins "
                    f"as reset(seed=0) to reset(seed={RESETS - 1}) do, and not elsewhere."
                )
            return
        environment.reset(seed=0)
        base = environment.unwrapped
        if hasattr(base, "set_state"):
            base.set_state(*np.split(start, [base.model.nq]))
        else:
            base.state = start.copy()

    def _seen(self, environment: Any, observation: Any) -> Array:
        base = environment.unwrapped
        if self.access == "observation":
            return self._flat(environment, observation)
        if hasattr(base, "set_state"):
            return np.concatenate([base.data.qpos, base.data.qvel])
        return np.array(base.state, np.float64).ravel()

    def _flat(self, environment: Any, observation: Any) -> Array:
        from gymnasium.spaces import flatten

        return np.array(flatten(self._space(environment), observation), np.float64)

    def _space(self, environment: Any) -> Any:
        """Of the observations."""
        return environment.observation_space

    def _own_names(self, environment: Any, size: int) -> list[str]:
        """Joints of MuJoCo, keys of an observation, or numbers."""
        base, space = environment.unwrapped, self._space(environment)
        if self.access == "observation":
            parts = getattr(space, "spaces", None)
            if isinstance(parts, Mapping):
                return [n for key, part in parts.items() for n in numbered(str(key), int(np.prod(part.shape or (1,))))]
            return numbered("observation", size)
        if hasattr(base, "set_state") and base.model.nq == base.model.nv == base.model.njnt:
            joints = [base.model.joint(i).name or f"joint{i}" for i in range(base.model.njnt)]
            return [*joints, *(f"{joint}_dot" for joint in joints)]
        return numbered("state", size)

    def _named(self, given: Sequence[str] | None, size: int, own: Sequence[str], key: str) -> tuple[str, ...]:
        names = tuple(given or own)
        if len(names) != size or len(set(names)) < size:
            raise FamilyError((key,), f"should be {size} different names for {', '.join(numbered('component', size))}")
        return names

    def _angles(self, states: Sequence[str]) -> list[str]:
        for angle in self.settings.angles:
            if angle not in states:
                raise FamilyError(("angles",), f"there is no state {angle!r}{nearest(angle, states)}")
        return list(self.settings.angles)

    def _dt(self, environment: Any) -> float:
        base = environment.unwrapped
        dt = self.settings.dt or getattr(base, "dt", None) or getattr(base, "tau", None)
        return float(dt or 1.0 / base.metadata.get("render_fps", 20))

    def _actions(self, space: Any) -> None:
        """Names and limits of the controls."""
        from gymnasium.spaces import Box, Discrete

        if not isinstance(space, Box | Discrete):
            raise FamilyError((self.source,), f"{self.make} has actions {space}, which are no numbers")
        self._discrete, self._shape = isinstance(space, Discrete), space.shape or ()
        size = int(np.prod(self._shape)) if self._shape else 1
        controls = self._named(self.settings.controls, size, numbered("action", size), "controls")
        if isinstance(space, Discrete):
            ranges = [(float(space.start), float(space.start + space.n - 1))]
        else:
            ranges = list(
                zip(space.low.ravel().astype(float).tolist(), space.high.ravel().astype(float).tolist(), strict=True)
            )
        for name in self.settings.limits:
            if name not in controls:
                raise FamilyError(("signal", "limits", name), f"there is no control {name!r}{nearest(name, controls)}")
        limits: dict[str, Limits | None] = {
            name: self.settings.limits.get(name) or (own if np.isfinite(own).all() else None)
            for name, own in zip(controls, ranges, strict=True)
        }
        give(self, controls=controls, limits={name: given for name, given in limits.items() if given is not None})
        give(
            self,
            control_limit=control_limit(limits),
            alternations=5,
            control_noise=None,
            discrete_controls=self._discrete,
        )

    def _action(self, control: Array) -> Any:
        return int(control[0]) if self._discrete else control.reshape(self._shape)

    def _start_values(self) -> None:
        self._rest = np.zeros(len(self.states))
        if self.settings.start and self.access == "observation":
            raise FamilyError(("start",), f"cannot be set, since {self.make} is seen through its observations")
        for name, value in self.settings.start.items():
            if name not in self.states:
                raise FamilyError(("start", name), f"there is no state {name!r}{nearest(name, self.states)}")
            try:
                self._rest[self.states.index(name)] = evaluate(value, {})
            except ExpressionError as error:
                raise FamilyError(("start", name), str(error)) from error

    def _check_expressions(self) -> None:
        check_used(
            self.box,
            {("parameters", n, "sets", a): e for n, given in self.parameters.items() for a, e in given.sets.items()},
        )

    @cached_property
    def _resets(self) -> Array:
        """What is seen after every reset [RESETS, S], in the middle of the box."""
        with quietly():
            environment = self.environment({name: (low + high) / 2 for name, (low, high) in self.box.items()})
        return np.stack([self._seen(environment, environment.reset(seed=seed)[0]) for seed in range(RESETS)])

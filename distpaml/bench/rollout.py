"""Simulated steps per second on one thread: the batched path against loops of dm_control's `env.step`.

All sides run the same cart-poles (reading `text`) under the same controls, take turns, and must return the
same trajectories to the last bit. Three lines, because what one counts decides the ratio:

    rollout        from task parameters to trajectories, model building counted in both: `simulate` against
                   the suite's model built for each task (most of it textures) and its swing-up environment
    rollout-steps  stepping alone, models built beforehand and the same on both sides, swing-up environment
    rollout-bare   the same with a task that observes the state and rewards nothing: all `env.step` must cost
"""

import os
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from distpaml.bench import Result
from distpaml.domains import CartPole, control_signal
from distpaml.domains.base import Array
from distpaml.domains.mujoco import rollout
from distpaml.seeds import rng

TASKS = 60
REPEATS = 5


def run() -> list[Result]:
    domain = CartPole()
    low, high = np.array(list(domain.box.values())).T
    tasks = rng(0, "bench-tasks").uniform(low, high, (TASKS, len(low)))
    starts = np.stack([domain.start(rng(0, "bench-start", i)) for i in range(TASKS)])
    signal = control_signal(domain.control_limit, domain.alternations, domain.steps, rng(0, "bench-controls"))
    controls = np.repeat(signal[None], TASKS, axis=0)

    models = [domain.model(task, visual=False) for task in tasks]
    suite = [_environment(model) for model in models]
    bare = [_environment(model, bare=True) for model in models]
    few = slice(0, TASKS // 10)

    def from_parameters() -> Array:
        environments = [_environment(domain.model(task)) for task in tasks[few]]
        return _loop(environments, starts[few], controls[few])

    sides: dict[str, Callable[[], Array]] = {
        "batch": lambda: rollout(models, starts, controls)[0],
        "suite": lambda: _loop(suite, starts, controls),
        "bare": lambda: _loop(bare, starts, controls),
        "simulate": lambda: domain.simulate(tasks, starts, controls),
        "from parameters": from_parameters,
    }
    speed = _steps_per_second(sides)
    return [
        _result("rollout", speed["simulate"], speed["from parameters"], "dm_control, models included"),
        _result("rollout-steps", speed["batch"], speed["suite"], "env.step with the suite's swing-up task"),
        _result("rollout-bare", speed["batch"], speed["bare"], "env.step with a task that computes nothing"),
    ]


def _result(name: str, ours: float, other: float, against: str) -> Result:
    return Result(name, ours / other, ours, other, "steps/s", against)


def _steps_per_second(sides: dict[str, Callable[[], Array]]) -> dict[str, float]:
    """Median speed of each side over `REPEATS` rounds in which all take turns, after a round to warm up."""
    expected = sides["batch"]()
    for name, side in sides.items():
        states = side()
        if not np.array_equal(states, expected[: len(states)]):
            raise RuntimeError(f"the trajectories of {name!r} are not those of the batched rollout.")
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(REPEATS):
        for name, side in sides.items():
            begin = perf_counter()
            states = side()
            speeds[name].append(len(states) * (states.shape[1] - 1) / (perf_counter() - begin))
    return {name: median(values) for name, values in speeds.items()}


def _loop(environments: list[Any], starts: Array, controls: Array) -> Array:
    """States [N, T, S] by `env.step`, one environment after the other."""
    states = np.empty((len(starts), controls.shape[1] + 1, starts.shape[1]))
    for environment, start, signal, trajectory in zip(environments, starts, controls, states, strict=True):
        physics = environment.physics
        environment.reset()
        with physics.reset_context():
            physics.set_state(start)
        trajectory[0] = start
        for t, control in enumerate(signal):
            environment.step(control)
            trajectory[t + 1] = physics.state()
    return states


def _environment(model: Any, bare: bool = False) -> Any:
    """dm_control's environment around a compiled cart-pole."""
    os.environ.setdefault("MUJOCO_GL", "disable")
    from dm_control.mujoco.wrapper import MjModel
    from dm_control.rl import control
    from dm_control.suite import base, cartpole

    class Bare(base.Task):
        def get_observation(self, physics: Any) -> dict[str, Array]:
            return {"state": physics.state()}

        def get_reward(self, physics: Any) -> float:
            return 0.0

    task = Bare() if bare else cartpole.Balance(swing_up=True, sparse=False)
    return control.Environment(cartpole.Physics.from_model(MjModel(model)), task)

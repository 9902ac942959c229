"""Simulated steps per second on one thread: the batched path against loops of dm_control's `env.step`.

All sides run the same cart-poles (variant `paper`) under the same controls, take turns, and must return the
same trajectories to the last bit. The ratio depends on what you count, so there are three lines:

    rollout        the cost of a new task, from its parameters to its trajectory. Ours is `simulate`, which
                   compiles a model without visuals; the other side edits the suite's XML, builds the suite's
                   swing-up environment from it, textures and all, and steps that
    rollout-steps  stepping only, with models and environments built beforehand
    rollout-bare   stepping only, the other side with our model without visuals and a task that observes the
                   state and rewards nothing: the least that `env.step` can cost

The race runs in a process of its own with MUJOCO_GL=disable: dm_control looks for a display when it is imported,
and sets environment variables that would stay with whoever called us.
"""

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter
from typing import Any
from xml.etree import ElementTree

import numpy as np

from distpaml.bench import Result
from distpaml.domains import CartPole
from distpaml.domains.mujoco import rollout
from distpaml.domains.signals import default_signals
from distpaml.seeds import rng
from distpaml.types import Array

TASKS = 60
REPEATS = 5


def run(options: Namespace) -> list[Result]:
    command = [sys.executable, "-m", "distpaml.bench.rollout", str(TASKS), str(REPEATS)]
    done = subprocess.run(command, env={**os.environ, "MUJOCO_GL": "disable"}, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"the process of the benchmark ended with status {done.returncode}.")
    speed = json.loads(done.stdout)
    return [
        Result(name, speed[ours] / speed[other], speed[ours], speed[other], "steps/s", against)
        for name, ours, other, against in (
            ("rollout", "simulate", "build and env.step", "a new suite environment per task and env.step"),
            ("rollout-steps", "steps", "env.step", "env.step alone, suite environments built beforehand"),
            ("rollout-bare", "steps", "bare env.step", "env.step alone, with nothing to observe or reward"),
        )
    ]


def race(count: int, repeats: int) -> dict[str, float]:
    """Steps per second of every side on `count` tasks."""
    domain = CartPole()
    low, high = np.array(list(domain.box.values())).T
    tasks = rng(0, "bench-tasks").uniform(low, high, (count, len(low)))
    starts = np.stack([domain.start(rng(0, "bench-start", i)) for i in range(count)])
    signal = default_signals(domain, rng(0, "bench-controls"))
    controls = np.repeat(signal[None], count, axis=0)

    few = slice(0, count // 10)  # the other side is slow, and a suite model with its textures takes 12 MB
    models = [domain.model(task, visual=False) for task in tasks]
    suite = [_suite_environment(task) for task in tasks[few]]
    bare = [_bare_environment(model) for model in models[few]]

    sides: dict[str, Callable[[], Array]] = {
        "simulate": lambda: domain.simulate(tasks, starts, controls),
        "build and env.step": lambda: _loop(map(_suite_environment, tasks[few]), starts[few], controls[few]),
        "steps": lambda: rollout(models, starts, controls)[0],
        "env.step": lambda: _loop(suite, starts[few], controls[few]),
        "bare env.step": lambda: _loop(bare, starts[few], controls[few]),
    }
    return _steps_per_second(sides, repeats)


def _steps_per_second(sides: dict[str, Callable[[], Array]], repeats: int) -> dict[str, float]:
    """Median speed of each side over `repeats` rounds in which all take turns, after a warm-up round.

    The first side runs all the tasks; the others run the first few of them and must get the same trajectories.
    """
    expected = next(iter(sides.values()))()
    for name, side in sides.items():
        states = side()
        if not np.array_equal(states, expected[: len(states)]):
            raise RuntimeError(f"the trajectories of {name!r} are not those of the batched path.")
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            begin = perf_counter()
            states = side()
            speeds[name].append(len(states) * (states.shape[1] - 1) / (perf_counter() - begin))
    return {name: median(values) for name, values in speeds.items()}


def _loop(environments: Iterable[Any], starts: Array, controls: Array) -> Array:
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


def _suite_environment(parameters: Array) -> Any:
    """The suite's swing-up environment for one task, made as the suite makes its own: from edited XML."""
    from dm_control.rl import control
    from dm_control.suite import cartpole

    mass, length = map(float, parameters)
    text, assets = cartpole.get_model_and_assets()
    root = ElementTree.fromstring(text)
    edits: dict[str, dict[str, str]] = {
        "option": {"timestep": str(CartPole.dt)},
        "option/flag": {"constraint": "disable"},
        "default/default/geom": {"fromto": f"0 0 0 0 0 {length!r}", "mass": repr(mass)},
        "actuator/motor": {"gear": "1", "ctrllimited": "false"},
    }
    for path, attributes in edits.items():
        element = root.find(path)
        assert element is not None, path
        element.attrib.update(attributes)
    physics = cartpole.Physics.from_xml_string(ElementTree.tostring(root), assets)
    return control.Environment(physics, cartpole.Balance(swing_up=True, sparse=False))


def _bare_environment(model: Any) -> Any:
    """dm_control's environment around a compiled model, with a task that does next to nothing."""
    from dm_control.mujoco import Physics
    from dm_control.mujoco.wrapper import MjModel
    from dm_control.rl import control
    from dm_control.suite import base

    class Bare(base.Task):
        def get_observation(self, physics: Any) -> dict[str, Array]:
            return {"state": physics.state()}

        def get_reward(self, physics: Any) -> float:
            return 0.0

    return control.Environment(Physics.from_model(MjModel(model)), Bare())


if __name__ == "__main__":
    print(json.dumps(race(*map(int, sys.argv[1:]))))

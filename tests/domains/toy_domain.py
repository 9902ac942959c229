"""A domain of one's own without MuJoCo, and the same with one fault each."""

from typing import ClassVar

import numpy as np

from distpaml.domains import Domain


class Spring(Domain):
    """A mass on a spring: ẍ = (u − k x) / m, by symplectic Euler."""

    name = "spring"
    box: ClassVar = {"mass": (1.0, 2.0), "stiffness": (0.5, 3.0)}
    states = ("x", "x_dot")
    dt = 0.1
    trajectory_length = 12
    control_limit = 2.0
    alternations = 3

    def start(self, rng):
        return rng.standard_normal(2)

    def simulate(self, tasks, starts, controls, threads=1):
        tasks, starts, controls = self.checked(tasks, starts, controls)
        mass, stiffness = tasks.T
        x, speed = starts.T.copy()
        states = [starts]
        for u in controls[:, :, 0].T:
            speed = speed + self.dt * (u - stiffness * x) / mass
            x = x + self.dt * speed
            states.append(np.stack([x, speed], -1))
        return np.stack(states, 1)


class Nameless(Spring):
    name = ""
    sentence = "name must be a word"


class Backwards(Spring):
    box: ClassVar = {"mass": (2.0, 1.0), "stiffness": (0.5, 3.0)}
    sentence = "box: mass must have an interval"


class StrangeAngle(Spring):
    angles = ("theta",)
    sentence = "angles must be among the states"


class ShortStart(Spring):
    sentence = "start must return 2 float64 numbers"

    def start(self, rng):
        return rng.standard_normal(3)


class GlobalStart(Spring):
    sentence = "start must depend on its rng alone"
    calls = 0

    def start(self, rng):
        GlobalStart.calls += 1
        return rng.standard_normal(2) + GlobalStart.calls


class Crashing(Spring):
    sentence = "simulate raised ZeroDivisionError"

    def simulate(self, tasks, starts, controls, threads=1):
        return 1 / 0


class SinglePrecision(Spring):
    sentence = "and float64, not an array of shape [5, 12, 2] and float32"

    def simulate(self, *args, **kwargs):
        return super().simulate(*args, **kwargs).astype(np.float32)


class NotANumber(Spring):
    sentence = "rather than return what is not finite, as it does for mass=2, stiffness=3"

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        states[tasks.sum(axis=1) == 5, 3] = np.nan
        return states


class LateStart(Spring):
    sentence = "the first state of a trajectory must be its start"

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        states[:, 0] += 1
        return states


class Scribbler(Spring):
    sentence = "simulate must not change its arguments"

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        controls[:] = 0
        return states


class Fickle(Spring):
    sentence = "simulate is not deterministic"
    calls = 0

    def simulate(self, tasks, starts, controls, threads=1):
        Fickle.calls += 1
        states = super().simulate(tasks, starts, controls)
        states[:, 1:] += 1e-12 * Fickle.calls
        return states


class Sociable(Spring):
    sentence = "alone it comes out differently"

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        states[:, 1:] += 1e-9 * (len(tasks) > 1)
        return states


class Queueing(Spring):
    sentence = "depends on the order of the batch"

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        if len(tasks) > 1:
            states[:, 1:] += 1e-9 * (tasks[0, 0] > tasks[-1, 0])
        return states


class ThreadBound(Spring):
    sentence = "depends on the number of threads"

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        states[:, 1:] += 1e-9 * threads - 1e-9
        return states


class Recycling(Spring):
    sentence = "simulate must return new memory"
    kept: ClassVar = {}

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        kept = self.kept.setdefault(states.shape, states)
        kept[:] = states
        return kept if len(tasks) > 1 else states


class Clairvoyant(Spring):
    sentence = "fewer controls must give the beginning of the same trajectory"

    def simulate(self, tasks, starts, controls, threads=1):
        states = super().simulate(tasks, starts, controls)
        states[:, 1:, 0] += controls[:, -1]
        return states


class Massless(Spring):
    sentence = "mass makes no difference"

    def simulate(self, tasks, starts, controls, threads=1):
        return super().simulate(np.where([True, False], 1.0, tasks), starts, controls)


class Deaf(Spring):
    sentence = "the control makes no difference"

    def simulate(self, tasks, starts, controls, threads=1):
        return super().simulate(tasks, starts, 0 * controls)


FAULTS = Spring.__subclasses__()

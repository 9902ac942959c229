"""Experiments so small that a whole run takes a second, for tests of everything around the model."""

from functools import cache

from distpaml.config import ExperimentConfig, load
from distpaml.data.tasks import TaskSet
from distpaml.loop import active_loop
from distpaml.rounds import Round, State
from distpaml.runtime.local import local_parts
from distpaml.select.methods import get_method

SIZE = (
    "rounds=2",
    "domain.trajectory_length=20",
    "model.inducing=40",
    "fit.evaluations=20",
    "fit.restarts=1",
    "fit.image_adam_steps=20",
    "selection.per_dimension=20",
    "selection.pool_size=64",
    "evaluation.grid=2",
    "evaluation.inference_steps=10",
)


def tiny(*overrides: str, experiment: str = "cartpole") -> ExperimentConfig:
    return load(experiment, [*SIZE, *overrides])


def run_loop(config: ExperimentConfig, state: State | None = None) -> list[Round]:
    return list(active_loop(get_method(TaskSet(config)), *local_parts(config), state))


@cache
def rounds_of(*overrides: str, experiment: str = "cartpole") -> list[Round]:
    """The rounds of a tiny experiment; shared by tests, which must not change them."""
    return run_loop(tiny(*overrides, experiment=experiment))

"""Experiments so small that a whole run takes a second, for tests of everything around the model."""

from functools import cache

from distpaml.config import Experiment, load
from distpaml.local import LocalScorer, LocalSimulator, LocalTrainer
from distpaml.loop import active_loop
from distpaml.rounds import Round, State
from distpaml.select.methods import get_method
from distpaml.world import World

SIZE = (
    "rounds=2",
    "domain.steps=20",
    "model.inducing=40",
    "fit.evaluations=20",
    "fit.restarts=1",
    "fit.image_steps=20",
    "selection.per_dimension=20",
    "selection.set_size=64",
    "evaluation.grid=2",
    "evaluation.steps=10",
)


def tiny(*overrides: str, experiment: str = "cartpole") -> Experiment:
    return load(experiment, [*SIZE, *overrides])


def parts(config: Experiment) -> tuple[LocalSimulator, LocalTrainer, LocalScorer]:
    return LocalSimulator(config), LocalTrainer(config), LocalScorer(config)


def play(config: Experiment, state: State | None = None) -> list[Round]:
    return list(active_loop(get_method(World(config)), *parts(config), state))


@cache
def played(*overrides: str, experiment: str = "cartpole") -> list[Round]:
    """The rounds of a tiny experiment; shared by tests, which must not change them."""
    return play(tiny(*overrides, experiment=experiment))

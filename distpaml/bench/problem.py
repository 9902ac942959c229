"""The data that the model's benchmarks share: a paper experiment's tasks and test grid, in raw units."""

from dataclasses import dataclass

import numpy as np
import torch

from distpaml.config import Experiment, load
from distpaml.data import Dataset, Divisors
from distpaml.designs import bounds, design, grid
from distpaml.domains import control_signal, get_domain
from distpaml.domains.base import Array
from distpaml.model.meta_model import MetaModel
from distpaml.seeds import rng


@dataclass(frozen=True)
class Problem:
    """An experiment (i) with `tasks` of its Latin hypercube simulated, and its test grid."""

    experiment: Experiment
    training: Dataset
    test: Dataset

    @classmethod
    def make(cls, name: str, tasks: int, seed: int = 0) -> "Problem":
        """Of the shipped experiment `name`."""
        experiment = load(name)
        low, high = bounds(experiment.domain.box)
        training = _simulated(experiment, design(low, high, tasks, seed), seed, "start")
        test = _simulated(experiment, grid(low, high, experiment.evaluation.grid), seed, "test-start")
        return cls(experiment, training, test)

    def first(self, tasks: int) -> Dataset:
        """The first training tasks."""
        return self.training.tasks(slice(0, tasks))

    def judge(self, model: MetaModel, training: Dataset) -> tuple[float, float]:
        """RMSE (mean over test tasks) and NLL per number, divided by the test grid's own scale."""
        fair = Divisors.of(training, self.test).fair
        mean, variance = model.predict(self.test.inputs, model.infer(self.test, self.experiment.evaluation.steps))
        error = self.test.targets - mean
        density = 0.5 * (np.log(2.0 * np.pi * variance) + error**2 / variance).sum(-1)
        rmse = np.sqrt(np.mean(fair.errors(error) ** 2, axis=(1, 2))).mean()
        return float(rmse), float(fair.nll(density).mean() / error.shape[-1])


def _simulated(experiment: Experiment, tasks: Array, seed: int, purpose: str) -> Dataset:
    config = experiment.domain
    domain = get_domain(config.name)(config.reading)
    signal = control_signal(config.control_limit, config.alternations, config.steps, rng(seed, "controls"))
    controls = np.repeat(signal[None], len(tasks), axis=0)
    starts = np.stack([domain.start(rng(seed, purpose, index)) for index in range(len(tasks))])
    states = domain.simulate(tasks, starts, controls)
    angles = [domain.states.index(angle) for angle in domain.angles]
    return Dataset.from_trajectories(states, controls, angles, tasks)


def one_thread() -> None:
    """Benchmarks of the model are on one core."""
    torch.set_num_threads(1)

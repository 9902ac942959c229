"""The data that the model's benchmarks share: tasks of a Latin hypercube and the test grid of a paper experiment."""

from collections.abc import Sequence
from dataclasses import dataclass

from distpaml.config import ExperimentConfig, load
from distpaml.data import Dataset, Divisors
from distpaml.data.tasks import TaskSet
from distpaml.evaluate import evaluate
from distpaml.model.meta_model import MetaModel
from distpaml.runtime.local import LocalSimulator


@dataclass(frozen=True)
class Problem:
    """An experiment with its data simulated."""

    experiment: ExperimentConfig
    training: Dataset
    test: Dataset

    @classmethod
    def make(cls, name: str, tasks: int, seed: int = 0, overrides: Sequence[str] = ()) -> "Problem":
        """The shipped experiment `name` with `tasks` initial tasks, fitted on the CPU."""
        experiment = load(name, [f"initial={tasks}", "rounds=0", f"seed={seed}", "fit.device=cpu", *overrides])
        task_set, simulator = TaskSet(experiment), LocalSimulator(experiment)
        return cls(
            experiment, simulator.simulate(task_set.initial()).result(), simulator.simulate(task_set.test()).result()
        )

    def first(self, tasks: int) -> Dataset:
        """The first training tasks."""
        return self.training.tasks(slice(0, tasks))

    def evaluate(self, model: MetaModel, training: Dataset) -> dict[str, float]:
        """Both measures of `model`, which was fitted to `training`, on the test grid."""
        divisors = Divisors.of(training, self.test)
        return evaluate(model, divisors, self.test, self.experiment.evaluation.inference_steps).scores.summary()

"""How much could any choice of tasks gain? A greedy design that knows the test errors, beside methods and the oracle.

Every round tries 25 candidates spread over the box: each is simulated, a short fit goes on from the last model with it,
and the one whose fit has the least fair RMSE on the test tasks is added. No method may look at these, so its line is
what a choice of one task after the other can hope for. The oracle, trained on the test tasks, bounds the model itself.
The default method's share of the possible gain is (its area − lhs's) / (greedy's area − lhs's), areas under the RMSE.

`--experiment NAME` runs one experiment, `--seeds N` that many seeds (2 unless given), `--set KEY=VALUE` overrides keys.
"""

from argparse import Namespace
from collections.abc import Iterator

import numpy as np
import torch

from distpaml import seeds
from distpaml.bench import Result
from distpaml.catalogue import DEFAULT
from distpaml.config import ExperimentConfig, load
from distpaml.data import Dataset
from distpaml.data.tasks import TaskSet
from distpaml.loop import active_loop
from distpaml.model.meta_model import MetaModel
from distpaml.runtime.local import LocalSimulator, LocalTrainer, local_parts
from distpaml.select.candidates import fine_pool
from distpaml.select.methods import get_method

EXPERIMENTS = ("cartpole", "pendubot")
CANDIDATES = 25
SHORT = {"settling": 4, "evaluations": 8}
"""Budget of the fit that a candidate is tried with."""


def run(options: Namespace) -> Iterator[Result]:
    torch.set_num_threads(1)
    print(f"experiment seed round: rmse of greedy, {DEFAULT.name}, lhs, oracle", flush=True)
    for name in EXPERIMENTS if options.experiment is None else (options.experiment,):
        areas = []
        for seed in range(options.seeds or 2):
            own = [f"seed={seed}", "fit.device=cpu", *(options.set or ())]
            methods = (DEFAULT.name, "lhs", "oracle")
            plus, lhs, oracle = (_errors_of(load(name, [*own, f"method={method}"])) for method in methods)
            greedy = []
            for round, error in enumerate(greedy_errors(load(name, own))):
                greedy.append(error)
                errors = f"{error:.4f}, {plus[round]:.4f}, {lhs[round]:.4f}, {oracle[0]:.4f}"
                print(f"{name} {seed} {round}: {errors}", flush=True)
            areas.append([np.mean(greedy), np.mean(plus), np.mean(lhs)])
        ours, method, other = (float(area) for area in np.mean(areas, axis=0))
        share = (other - method) / (other - ours)
        print(f"{name}: {DEFAULT.name} has {100 * share:.0f} % of the possible gain over lhs", flush=True)
        yield Result(f"greedy-{name}", other / ours, ours, other, "rmse", "lhs, both averaged over the rounds")


def _errors_of(config: ExperimentConfig) -> list[float]:
    """Fair RMSE of every round of a run."""
    return [round.record.rmse for round in active_loop(get_method(TaskSet(config)), *local_parts(config))]


def greedy_errors(config: ExperimentConfig) -> Iterator[float]:
    """Fair RMSE of every round of the greedy design."""
    task_set, simulator, trainer = TaskSet(config), LocalSimulator(config), LocalTrainer(config)
    short = LocalTrainer(config.model_copy(update={"fit": config.fit.model_copy(update=SHORT)}))
    low, high, test = task_set.descriptor.low, task_set.descriptor.high, simulator.simulate(task_set.test())

    def fitted(by: LocalTrainer, data: Dataset, round: int, last: MetaModel | None) -> tuple[float, MetaModel]:
        model = by.fit(data, round, last, None)
        return by.evaluate(model, data, test).result().scores.summary()["rmse"], model

    data = simulator.simulate(task_set.initial()).result()
    error, model = fitted(trainer, data, 0, None)
    yield error
    for round in range(1, config.rounds + 1):
        pool = fine_pool(low, high, CANDIDATES, seeds.rng(config.seed, "candidates", round))
        tasks = [task_set.chosen(row[None], first=len(data)) for row in pool]
        tried = [data.append(simulator.simulate(task).result()) for task in tasks]
        data = tried[int(np.argmin([fitted(short, more, round, model)[0] for more in tried]))]
        error, model = fitted(trainer, data, round, model)
        yield error

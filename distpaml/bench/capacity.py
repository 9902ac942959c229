"""How many inducing points are enough: fits from scratch to 18 tasks of a Latin hypercube.

Columns are the inducing points, the bound in nats per observed number, the fair RMSE (mean, median), NLL and coverage
on the test grid, and seconds of CPU of the fit and of the evaluation, on one thread.

`--experiment NAME` runs one experiment, `--seeds N` that many seeds (3 unless given), `--set KEY=VALUE` overrides keys.
"""

from argparse import Namespace
from collections.abc import Iterator
from time import process_time

import numpy as np
import torch

from distpaml.bench import Result
from distpaml.bench.problem import Problem
from distpaml.model.meta_model import fit_model

EXPERIMENTS = ("pendubot", "cart_double_pole")
SIZES = (300, 450, 600, "auto")
TASKS = 18


def run(options: Namespace) -> Iterator[Result]:
    torch.set_num_threads(1)
    print(
        "experiment inducing seed: points, bound | rmse, median, nll, coverage | seconds of fit, evaluation", flush=True
    )
    for name in EXPERIMENTS if options.experiment is None else (options.experiment,):
        means = {}
        for size in SIZES:
            rows = [_row(name, size, seed, options.set or ()) for seed in range(options.seeds or 3)]
            means[size] = np.mean(rows, axis=0)
        baseline = means[SIZES[0]]
        for size in SIZES[1:]:
            ours, other = float(means[size][0]), float(baseline[0])
            yield Result(f"capacity-{name}-{size}", other / ours, ours, other, "rmse", f"{SIZES[0]} inducing points")


def _row(name: str, size: int | str, seed: int, overrides: tuple[str, ...]) -> tuple[float, ...]:
    problem = Problem.make(name, TASKS, seed, [f"model.inducing={size}", *overrides])
    begin = process_time()
    model = fit_model(problem.training, problem.experiment.model, problem.experiment.fit, seed=seed)
    fitted = process_time()
    scores = problem.evaluate(model, problem.training)
    evaluated = process_time()
    bound = model.terms["elbo"] / problem.training.targets.size
    row = scores["rmse"], scores["rmse_median"], scores["nll"], scores["coverage"]
    print(
        f"{name} {size} {seed}: {len(model.gp.zx)}, {bound:.3f} | {', '.join(f'{value:.3f}' for value in row)} | "
        f"{fitted - begin:.1f}, {evaluated - fitted:.1f}",
        flush=True,
    )
    return row

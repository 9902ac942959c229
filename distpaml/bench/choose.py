"""What a choice costs: every utility ranks 2000 candidates after 18 tasks, 600 inducing points, one thread.

Seconds of CPU, the least of three. The map to latents, which all utilities need, is timed with each. The other side is
the fit that every choice comes after. `--set KEY=VALUE` overrides keys.
"""

from argparse import Namespace
from collections.abc import Iterator
from time import process_time

import torch

from distpaml.bench import Result
from distpaml.bench.problem import Problem
from distpaml.data.tasks import TaskSet
from distpaml.model.meta_model import fit_model
from distpaml.select.methods import get_method
from distpaml.select.scoring import UtilityScorer
from distpaml.select.utilities import UTILITIES

TASKS = 18
TIMES = 3


def run(options: Namespace) -> Iterator[Result]:
    torch.set_num_threads(1)
    problem = Problem.make("cartpole", TASKS, overrides=["model.inducing=600", *(options.set or ())])
    begin = process_time()
    model = fit_model(problem.training, problem.experiment.model, problem.experiment.fit, seed=0)
    fit, method = process_time() - begin, get_method(TaskSet(problem.experiment))
    for name in UTILITIES:
        seconds = []
        for _ in range(TIMES):
            begin = process_time()
            method.choose(model, problem.training, UtilityScorer(name).best)
            seconds.append(process_time() - begin)
        yield Result(f"choose-{name}", fit / min(seconds), min(seconds), fit, "s", "the fit before it")

"""The collapsed fit against the paper's procedure, on cart-pole data, one thread.

    fit-3, fit-10, fit-18    seconds to reach the bound that the paper's procedure (`fit.kind: svgp`: Adam 1e-2, one
                             sample of h, 5000 steps) ends with, against the seconds of that procedure, which
                             include the exact bound every 100 steps, by which it keeps its best state
    gap-3, gap-10, gap-18    the bound of the default budget against one ten times longer, in nats per observed number
    oracle-…                 fits to the 100 tasks of the test grid: error on that grid, by the fair measure
    core-…                   one evaluation as most of a fit's are, with latents that count as points, against one with
                             uncertain latents, at 18 tasks
    cost-…                   milliseconds of both against the number of tasks, and the memory of whole fits

`--steps` shortens the paper's procedure: its time is then extrapolated to 5000 steps, and the bound to reach is the
one after those steps. `--against gpytorch` times steps of a plain gpytorch SVGP of the same size as well.
"""

import resource
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from time import perf_counter

import gpytorch
import numpy as np
import torch

from distpaml.bench import Result
from distpaml.bench.problem import Problem
from distpaml.config.schema import FitConfig
from distpaml.data import Dataset
from distpaml.model.fit import place
from distpaml.model.latent_gp import LatentGP
from distpaml.model.meta_model import fit_model, training_set
from distpaml.model.placement import descriptor_embedding
from distpaml.model.stochastic import explicit_bound, fit_stochastic

SIZES = (3, 10, 18)
PAPER_STEPS = 5000
ORACLES = ("cartpole", "pendubot", "cart_double_pole")
COSTS = (3, 10, 30, 100, 300, 1000)
"""Tasks in the table of an evaluation's cost."""
MEMORY = ((18, 20), (1000, 2))
"""Tasks and evaluations of the fits whose memory is measured."""


def run(options: Namespace) -> Iterator[Result]:
    torch.set_num_threads(1)
    problem = Problem.make("cartpole", max(SIZES))
    for tasks in SIZES:
        yield from _race(problem, tasks, options)
    for tasks in SIZES:
        yield _gap(problem, tasks)
    for name in ORACLES:
        _oracle(name)
    yield from _core()
    _costs()
    _memory()


def _race(problem: Problem, tasks: int, options: Namespace) -> Iterator[Result]:
    data, experiment, steps = problem.first(tasks), problem.experiment, options.steps or PAPER_STEPS
    training = training_set(data, experiment.model, shards=1, seed=0)[0]
    paper = experiment.fit.model_copy(update={"kind": "svgp", "adam_steps": steps, "batch_tasks": tasks})
    begin = perf_counter()
    result, q = fit_stochastic(training, None, experiment.model, paper, seed=0)
    step = (perf_counter() - begin) / steps
    with torch.no_grad():
        goal = explicit_bound(result.gp, training, q).total.item()
    seconds, reached = _seconds_to(goal, data, problem)
    how = "" if steps == PAPER_STEPS else f", extrapolated from {steps}"
    print(
        f"fit-{tasks}: the paper's procedure ends at {goal / training.observed:.3f} nats per number, "
        f"{step * 1e3:.1f} ms a step; ours {'passes it' if reached else 'does NOT reach it'} in {seconds:.2f} s"
    )
    against = f"{PAPER_STEPS} Adam steps{how}"
    yield Result(f"fit-{tasks}", PAPER_STEPS * step / seconds, seconds, PAPER_STEPS * step, "s", against)
    if options.against == "gpytorch":
        other = PAPER_STEPS * _gpytorch_step(data, len(result.gp.zx))
        yield Result(
            f"fit-{tasks}-gpytorch",
            other / seconds,
            seconds,
            other,
            "s",
            f"{PAPER_STEPS} gpytorch SVGP steps (timed: 5)",
        )


def _seconds_to(goal: float, data: Dataset, problem: Problem) -> tuple[float, bool]:
    """Seconds of a fit from the start until its bound passes `goal`; the shortest of growing budgets that does."""
    experiment = problem.experiment
    for budget in (10, 20, 40, 80, experiment.fit.evaluations):
        fit = experiment.fit.model_copy(update={"evaluations": budget, "restarts": 1})
        begin = perf_counter()
        model = fit_model(data, experiment.model, fit, seed=0)
        seconds = perf_counter() - begin
        if model.terms["elbo"] >= goal:
            return seconds, True
    return seconds, False


def _gpytorch_step(data: Dataset, inducing: int) -> float:
    """Seconds of a step of a plain gpytorch SVGP on inputs with a latent of two dimensions appended, float64."""

    class Plain(gpytorch.models.ApproximateGP):
        def __init__(self, z: torch.Tensor, outputs: int) -> None:
            shape = torch.Size([outputs])
            q = gpytorch.variational.CholeskyVariationalDistribution(len(z), batch_shape=shape)
            super().__init__(gpytorch.variational.VariationalStrategy(self, z.expand(outputs, -1, -1), q))
            self.mean_module = gpytorch.means.ZeroMean(batch_shape=shape)
            kernel = gpytorch.kernels.RBFKernel(ard_num_dims=z.shape[-1])
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    inputs = torch.as_tensor(data.inputs[data.valid])
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    y = torch.as_tensor(data.targets[data.valid]).T
    h = torch.randn(len(data), 2, dtype=inputs.dtype, requires_grad=True)
    tasks = torch.repeat_interleave(torch.arange(len(data)), torch.as_tensor(data.counts))
    z = torch.cat([inputs, h.detach()[tasks]], -1)[:: max(1, len(inputs) // inducing)][:inducing]
    model = Plain(z.clone(), len(y)).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood(batch_shape=torch.Size([len(y)])).double()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(inputs))
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters(), h], 1e-2)

    def step() -> None:
        adam.zero_grad()
        loss = -bound(model(torch.cat([inputs, h[tasks]], -1).expand(len(y), -1, -1)), y).sum()
        loss.backward()
        adam.step()

    step()
    begin = perf_counter()
    for _ in range(5):
        step()
    return (perf_counter() - begin) / 5


def _gap(problem: Problem, tasks: int) -> Result:
    data, experiment = problem.first(tasks), problem.experiment
    bounds, seconds = [], []
    longer = {"evaluations": 10 * experiment.fit.evaluations, "tolerance": 1e-9}
    for fit in (experiment.fit, experiment.fit.model_copy(update=longer)):
        begin = perf_counter()
        bounds.append(fit_model(data, experiment.model, fit, seed=0).terms["elbo"] / data.targets.size)
        seconds.append(perf_counter() - begin)
    print(f"gap-{tasks}: {bounds[0]:.3f} in {seconds[0]:.1f} s, {bounds[1]:.3f} in {seconds[1]:.1f} s, nats per number")
    against = (
        f"a fit with ten times the budget that does not stop early, {bounds[1] - bounds[0]:.3f} nats per number above"
    )
    return Result(f"gap-{tasks}", seconds[1] / seconds[0], seconds[0], seconds[1], "s", against)


def _oracle(name: str) -> None:
    problem = Problem.make(name, 1)
    begin = perf_counter()
    model = fit_model(problem.test, problem.experiment.model, problem.experiment.fit, seed=0)
    seconds = perf_counter() - begin
    scores = problem.evaluate(model, problem.test)
    print(
        f"oracle-{name}: rmse {scores['rmse']:.4f}, nll {scores['nll']:.3f} nats per number, "
        f"{seconds:.0f} s to fit 100 tasks",
        flush=True,
    )


def _core() -> Iterator[Result]:
    for inducing in (300, 600):
        problem = Problem.make("cartpole", max(SIZES), overrides=[f"model.inducing={inducing}"])
        ours, other = (seconds * 1e3 for seconds in _evaluation_seconds(problem, max(SIZES)))
        yield Result(f"core-{inducing}", other / ours, ours, other, "ms", "an evaluation with uncertain latents")


def _costs() -> None:
    """The table of one evaluation's cost against tasks; the tasks of the cart-pole's box, drawn again and again."""
    print("cost: tasks, milliseconds of an evaluation of points and of uncertain latents, per task of points")
    problem = Problem.make("cartpole", max(COSTS), overrides=["model.inducing=300"])
    for tasks in COSTS:
        points, uncertain = (seconds * 1e3 for seconds in _evaluation_seconds(problem, tasks))
        print(f"cost-{tasks}: {points:.0f} ms, {uncertain:.0f} ms, {points / tasks:.2f} ms per task", flush=True)


def _evaluation_seconds(problem: Problem, tasks: int) -> tuple[float, float]:
    """Of one evaluation with its gradient, if latents are points and if they are uncertain."""
    data, experiment = problem.first(tasks), problem.experiment
    training = training_set(data, experiment.model, shards=1, seed=0)[0]
    embedding = descriptor_embedding(training.descriptors, experiment.model.latent, torch.Generator().manual_seed(0))
    gp = LatentGP(training.x.shape[-1], training.y.shape[-1], embedding, training.descriptors)
    place(gp, training, experiment.model)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(3):
        for uncertain, times in seconds.items():
            begin = perf_counter()
            gp.terms(training, uncertain).total.backward()
            times.append(perf_counter() - begin)
    points, exact = (float(np.median(times)) for times in seconds.values())
    return points, exact


def _memory() -> None:
    """Peak memory of whole fits, each in a process of its own."""
    for tasks, evaluations in MEMORY:
        code = f"from distpaml.bench.fit import peak; peak({tasks}, {evaluations})"
        subprocess.run([sys.executable, "-c", code], check=True)


def peak(tasks: int, evaluations: int) -> None:
    """Print by how much a fit to `tasks` tasks raises the peak memory of this process."""
    torch.set_num_threads(1)
    problem = Problem.make("cartpole", tasks)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fit = FitConfig(evaluations=evaluations, restarts=1, device="cpu")
    fit_model(problem.training, problem.experiment.model, fit, seed=0)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory-{tasks}: {(after - before) / 1024:.0f} MiB over {before / 1024:.0f} MiB before the fit", flush=True)

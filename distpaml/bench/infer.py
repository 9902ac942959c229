"""Seconds to infer the latents of 100 test tasks and to predict their trajectories, on one thread.

The other side is the paper's way with the same model: 100 steps of Adam on (n, log t) of every test task, one sample
of h per step. Its steps are all alike, so a few are timed and the rest is extrapolated.
"""

from argparse import Namespace
from time import perf_counter

import torch

from distpaml.bench import Result
from distpaml.bench.problem import Problem
from distpaml.model.expectations import rbf
from distpaml.model.meta_model import MetaModel, fit_model
from distpaml.model.posterior import Latents

TASKS, STEPS, TIMED = 10, 100, 3


def run(options: Namespace) -> list[Result]:
    torch.set_num_threads(1)
    problem = Problem.make((options.experiment or "cartpole"), TASKS)
    experiment = problem.experiment
    model = fit_model(problem.training, experiment.model, experiment.fit, seed=0)
    begin = perf_counter()
    latents = model.infer(problem.test, STEPS)
    inferred = perf_counter()
    model.predict(problem.test.inputs, latents)
    ours = perf_counter() - begin
    other = STEPS * _adam_step_seconds(model, problem) + ours - (inferred - begin)
    print(f"infer: {inferred - begin:.2f} s of inference, {ours - inferred + begin:.2f} s of predictions")
    against = f"{STEPS} Adam steps with one sample of h ({TIMED} timed, the rest extrapolated)"
    return [Result("infer", other / ours, ours, other, "s", against)]


def _adam_step_seconds(model: MetaModel, problem: Problem) -> float:
    posterior = model.posterior
    scaled = problem.test.standardised(model.inputs, model.targets)
    x, y = torch.as_tensor(scaled.inputs), torch.as_tensor(scaled.targets)
    prior = Latents.prior(len(x), model.embeddings.mean)
    mean, log_variance = prior.mean.requires_grad_(), prior.variance.log().requires_grad_()
    adam = torch.optim.Adam([mean, log_variance], 1e-2)
    kx = rbf(x * posterior.rate_x, posterior.zx)

    def step() -> None:
        h = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        psi1 = (kx * rbf(h * posterior.rate_h, posterior.zh).unsqueeze(1)).flatten(0, 1)
        phi = torch.linalg.solve_triangular(posterior.chol, psi1.T, upper=False)
        residual = y.flatten(0, 1) - psi1 @ posterior.alpha
        spread = ((phi.T @ posterior.back) * psi1).sum()
        divergence = 0.5 * (log_variance.exp() + mean.square() - 1.0 - log_variance).sum()
        loss = 0.5 * ((residual.square() / posterior.noise).sum() - spread) + divergence
        adam.zero_grad()
        loss.backward()
        adam.step()

    step()
    begin = perf_counter()
    for _ in range(TIMED):
        step()
    return (perf_counter() - begin) / TIMED

"""The other side of `bench trial --experiment images`: the paper's schedule, Adam over everything with one sample.

Its implementation is ours (`fit.kind=svgp`, the authors released none): the same networks, images, data and inducing
points. Steps at 1, 8 and 16 tasks are timed and interpolated; a round has the paper's 10 000. On the data of one round
both schedules are run, and the bound that each reaches is printed, computed in the same way.
"""

from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np

from distpaml.config import ExperimentConfig
from distpaml.data import Dataset
from distpaml.data.tasks import TaskSet
from distpaml.model.image_model import fit_image_model
from distpaml.runtime.local import LocalSimulator

TIMED_TASKS, TIMED_STEPS = (1, 8, 16), 5
ROUND = 4
"""Tasks of the round on which both schedules are run, evenly spread over the images."""


def step_seconds(config: ExperimentConfig, tasks: int) -> float:
    """CPU time of one step of the paper's schedule, the cost of a fit without any step taken off."""
    seconds = []
    for steps in (1, 1 + TIMED_STEPS):
        begin = process_time()
        _fit(config, _data(config, tasks), {"kind": "svgp", "adam_steps": steps})
        seconds.append(process_time() - begin)
    return (seconds[1] - seconds[0]) / TIMED_STEPS


def paper_fit_seconds(config: ExperimentConfig, tasks: list[int]) -> float:
    """What the fits of all rounds, with so many tasks, would cost by the paper's schedule."""
    timed = [count for count in TIMED_TASKS if count <= max(tasks)]
    measured = [step_seconds(config, count) for count in timed]
    shown = ", ".join(f"{1e3 * each:.0f} ms at {count}" for each, count in zip(measured, timed, strict=True))
    print(f"a step of the paper's schedule: {shown} tasks", flush=True)
    return float(np.interp(tasks, timed, measured).sum()) * config.fit.adam_steps


def race(config: ExperimentConfig, steps: int) -> None:
    """Both schedules on one round; prints the bound that each reaches, in nats, and the time it took."""
    data = _data(config, min(ROUND, config.initial + config.rounds))
    sides: dict[str, dict[str, object]] = {
        "ours": {},
        f"the paper's, {steps} steps": {"kind": "svgp", "adam_steps": steps},
    }
    for name, settings in sides.items():
        begin = perf_counter()
        terms = _fit(config, data, settings, _progress)
        print(
            f"bound on a round of {len(data)} tasks, {name}: {terms['elbo']:.0f} nats in "
            f"{perf_counter() - begin:.0f} s (data {terms['data_fit'] - terms['kl_inducing']:.0f}, "
            f"images {terms['decoder']:.0f}, KL of latents {terms['kl_latent']:.0f})",
            flush=True,
        )


def _progress(step: int, bound: float) -> None:
    if step and step % 1000 == 0:
        print(f"  the paper's, after {step} steps: {bound:.0f} nats", flush=True)


def _fit(
    config: ExperimentConfig,
    data: Dataset,
    settings: dict[str, object],
    watch: Callable[[int, float], None] = lambda step, bound: None,
) -> dict[str, float]:
    image_set = TaskSet(config).image_set(data.descriptors)
    assert image_set is not None
    fit = config.fit.model_copy(update=settings)
    return dict(fit_image_model(data, image_set, config.model, fit, seed=0, watch=watch).terms)


def _data(config: ExperimentConfig, tasks: int) -> Dataset:
    task_set = TaskSet(config)
    assert task_set.choices is not None
    rows = np.linspace(0, len(task_set.choices) - 1, tasks).round().astype(int)
    return LocalSimulator(config).simulate(task_set.chosen(task_set.choices[rows], first=0)).result()

"""The model that the loop has after a round, against the best that longer fits from scratch find for the same tasks.

Real trials of experiment (i), a uniform and an active method. After rounds 0, 5, 10 and 15 the loop's model is compared
with a fit from scratch that has ten times the budget: three initial embeddings compete, and the best goes on, each for
ten times as many evaluations. Columns are the bounds in nats per observed number (the gap is
how far the loop is below), the fair RMSE of both on the test grid, and the start that the loop's model was fitted from.

`--experiment NAME` runs one experiment, `--seeds N` that many seeds (5 unless given), `--set KEY=VALUE` overrides keys.
"""

from argparse import Namespace
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from distpaml.bench import Result
from distpaml.config import ExperimentConfig, load
from distpaml.data import Dataset, Divisors
from distpaml.data.tasks import TaskSet
from distpaml.evaluate import evaluate
from distpaml.loop import active_loop
from distpaml.model.meta_model import MetaModel, fit_model
from distpaml.rounds import Round
from distpaml.runtime.local import local_parts
from distpaml.select.methods import get_method

EXPERIMENTS = ("cartpole", "pendubot", "cart_double_pole")
METHODS = ("uni", "paml-pool")
ROUNDS = (0, 5, 10, 15)
LONGER = 10
"""How many times the loop's budget a fit from scratch has."""


class Row(NamedTuple):
    """One round of one trial."""

    gap: float  # nats per observed number
    rmse: float
    other_rmse: float


def run(options: Namespace) -> Iterator[Result]:
    torch.set_num_threads(1)
    experiments = EXPERIMENTS if options.experiment is None else (options.experiment,)
    print("experiment method seed round: bound, of the longer fit, gap | rmse, of the longer fit | start", flush=True)
    for name in experiments:
        for method in METHODS:
            rows = []
            for seed in range(options.seeds or 5):
                overrides = [f"method={method}", f"seed={seed}", *(options.set or ())]
                rows += list(_rows(load(name, overrides), f"{name} {method} {seed}"))
            gaps = [row.gap for row in rows]
            print(f"{name} {method}: mean gap {np.mean(gaps):.3f}, largest {max(gaps):.3f} nats per number", flush=True)
            ours, other = (float(np.mean([getattr(row, key) for row in rows])) for key in ("rmse", "other_rmse"))
            against = f"fits from scratch with {LONGER} times the budget"
            yield Result(f"loop-{name}-{method}", other / ours, ours, other, "rmse", against)


def _rows(config: ExperimentConfig, label: str) -> Iterator[Row]:
    task_set, parts = TaskSet(config), local_parts(config)
    test, data = parts[0].simulate(task_set.test()).result(), None
    for round in active_loop(get_method(task_set), *parts):
        data = round.data if data is None else data.append(round.data)
        if round.record.round in ROUNDS:
            yield _compared(config, round, data, test, f"{label} {round.record.round}")


def _compared(config: ExperimentConfig, round: Round, data: Dataset, test: Dataset, label: str) -> Row:
    longer = {"settling": LONGER * config.fit.settling, "evaluations": LONGER * config.fit.evaluations}
    fit = config.fit.model_copy(update=longer | {"restarts": 3, "tolerance": 1e-6})
    other = fit_model(data, config.model, fit, seed=round.record.round)
    scores = evaluate(other, Divisors.of(data, test), test, config.evaluation.inference_steps).scores.summary()
    bounds = [_bound(model, data) for model in (round.model, other)]
    print(
        f"{label}: {bounds[0]:.3f}, {bounds[1]:.3f}, {bounds[1] - bounds[0]:.3f} | "
        f"{round.record.rmse:.4f}, {scores['rmse']:.4f} | {round.record.start}",
        flush=True,
    )
    return Row(bounds[1] - bounds[0], round.record.rmse, scores["rmse"])


def _bound(model: MetaModel, data: Dataset) -> float:
    return model.terms["elbo"] / (int(data.counts.sum()) * data.targets.shape[-1])

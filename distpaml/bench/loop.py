"""The model that the loop has after a round, against the best that longer fits from scratch find for the same tasks.

Real trials, a uniform and an active method. After rounds 0, 5, 10 and 15 the loop's model is compared with a fit from
scratch that has ten times the budget: three initial embeddings compete, and the best goes on, each for ten times as
many evaluations. Columns are the bounds in nats per observed number (the gap is how far the loop is below), the fair
RMSE of both on the test grid, and the start that the loop's model was fitted from.

`--runs DIR` compares the runs in DIR, a sweep's for example, instead of running trials. `--experiment NAME` runs one
experiment, `--seeds N` that many seeds (5 unless given), `--set KEY=VALUE` overrides keys.
"""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch

from distpaml.bench import Result
from distpaml.catalogue import DEFAULT
from distpaml.config import ExperimentConfig, load
from distpaml.data import Dataset, Divisors
from distpaml.data.tasks import TaskSet
from distpaml.errors import UserError
from distpaml.evaluate import evaluate
from distpaml.model.meta_model import fit_model
from distpaml.records import read_data, read_records
from distpaml.report.collect import collect
from distpaml.rounds import Record
from distpaml.runtime.local import LocalSimulator
from distpaml.runtime.run_experiment import run_to_end

EXPERIMENTS = ("cartpole", "pendubot", "cart_double_pole")
METHODS = ("uni", DEFAULT.name)
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
    print("experiment method seed round: bound, of the longer fit, gap | rmse, of the longer fit | start", flush=True)
    groups: dict[str, list[Row]] = {}
    for config, path in _kept(options.runs) if getattr(options, "runs", None) else _trials(options):
        groups.setdefault(f"{config.name}-{config.method}", []).extend(_rows(config, path))
    for name, rows in groups.items():
        gaps = [row.gap for row in rows]
        print(f"{name}: mean gap {np.mean(gaps):.3f}, largest {max(gaps):.3f} nats per number", flush=True)
        ours, other = (float(np.mean([getattr(row, key) for row in rows])) for key in ("rmse", "other_rmse"))
        against = f"fits from scratch with {LONGER} times the budget"
        yield Result(f"loop-{name}", other / ours, ours, other, "rmse", against)


def _trials(options: Namespace) -> Iterator[tuple[ExperimentConfig, Path]]:
    """Trials that are run here and now."""
    experiments = EXPERIMENTS if options.experiment is None else (options.experiment,)
    for name in experiments:
        for method in METHODS:
            for seed in range(options.seeds or 5):
                config = load(name, [f"method={method}", f"seed={seed}", *(options.set or ())])
                with TemporaryDirectory() as folder:
                    run_to_end(config, Path(folder) / "run")
                    yield config, Path(folder) / "run"


def _kept(directory: Path) -> Iterator[tuple[ExperimentConfig, Path]]:
    """The complete runs in a directory."""
    runs = [run for run in collect([directory]).runs if run.complete]
    if not runs:
        raise UserError(f"--runs: {directory} has no complete run.")
    for run in runs:
        yield ExperimentConfig.from_yaml(run.path / "config.yaml"), run.path


def _rows(config: ExperimentConfig, path: Path) -> Iterator[Row]:
    test = LocalSimulator(config).simulate(TaskSet(config).test()).result()
    for record in read_records(path):
        if record.round in ROUNDS:
            yield _compared(config, record, read_data(path, record.round), test)


def _compared(config: ExperimentConfig, record: Record, data: Dataset, test: Dataset) -> Row:
    longer = {"settling": LONGER * config.fit.settling, "evaluations": LONGER * config.fit.evaluations}
    fit = config.fit.model_copy(update=longer | {"restarts": 3, "tolerance": 1e-6})
    other = fit_model(data, config.model, fit, seed=record.round)
    scores = evaluate(other, Divisors.of(data, test), test, config.evaluation.inference_steps).scores.summary()
    numbers = int(data.counts.sum()) * data.targets.shape[-1]
    mine, theirs = record.terms["elbo"] / numbers, other.terms["elbo"] / numbers
    print(
        f"{config.name} {config.method} {config.seed} {record.round}: {mine:.3f}, {theirs:.3f}, {theirs - mine:.3f} | "
        f"{record.rmse:.4f}, {scores['rmse']:.4f} | {record.start}",
        flush=True,
    )
    return Row(theirs - mine, record.rmse, scores["rmse"])

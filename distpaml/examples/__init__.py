"""Worked examples of ask and tell. Each has a declaration and a way to try a task; `ask_and_tell` is the rest."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from distpaml import Experiment
from distpaml.errors import UserError

Columns = Mapping[str, Any]


def ask_and_tell(
    declaration: Mapping[str, Any], directory: str | Path, tasks: int, attempt: Callable[[Any], Columns]
) -> Experiment:
    """Go on until so many tasks are observed. A task that is out, perhaps since a crash, is tried before a new one."""
    experiment = Experiment(declaration, directory)
    while (status := experiment.status()).count("observed") < tasks:
        out = [task for task in status.tasks if task.state == "out"]
        task = out[0] if out else experiment.ask()[0]
        told = experiment.tell(task.id, attempt(task.descriptor))
        print(f"task {task.id}: {task.descriptor}, {told.transitions} transitions", flush=True)
    return experiment


HORIZON = 20
"""Steps: small errors grow, and after some swings a forecast is one of many."""


def forecast_errors(experiment: Experiment, descriptor: Mapping[str, Any], columns: Columns) -> tuple[float, float]:
    """How far a forecast of the first HORIZON steps of an untried task is off, and how far "nothing moves" is: root
    mean squares of all states, each in units of its standard deviation."""
    declaration = experiment.declaration
    states, controls = (
        np.stack([columns[n] for n in names], 1)[: HORIZON + 1] for names in (declaration.states, declaration.controls)
    )
    forecast = experiment.predict(descriptor, controls[:-1], states[0])
    scale = states.std(axis=0)
    return tuple(float(np.sqrt(np.mean(((guess - states) / scale) ** 2))) for guess in (forecast.mean, states[:1]))  # type: ignore[return-value]


def learn_and_forecast(
    declaration: Mapping[str, Any],
    directory: str | Path,
    tasks: int,
    attempt: Callable[[Any], Columns],
    untried: Mapping[str, Any],
) -> tuple[float, float]:
    """Learn from so many tasks, then print the errors of a forecast for one that was not among them."""
    error, still = forecast_errors(ask_and_tell(declaration, directory, tasks, attempt), untried, attempt(untried))
    print(f"forecast for {untried}: error {error:.3f}, of one that nothing moves {still:.3f}")
    return error, still


def command(main: Callable[[str, int], Any], usage: str | None) -> None:
    """`DIR [TASKS]` on the command line."""
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith("-"):
        sys.exit(usage)
    try:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 8)
    except UserError as error:
        sys.exit(f"error: {error}")

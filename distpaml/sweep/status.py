"""The progress of a sweep's runs, read from its folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distpaml.catalogue import planned_rounds
from distpaml.config import ExperimentConfig
from distpaml.config.load import leaves
from distpaml.errors import UserError
from distpaml.extension import check_same
from distpaml.records import read_records
from distpaml.rounds import Record
from distpaml.sweep.journal import Journal
from distpaml.sweep.schema import SweepConfig
from distpaml.sweep.trials import Sample, Trial, sample_trial


def records_of(folder: Path, name: str, config: ExperimentConfig) -> list[Record]:
    """The finished rounds of a run; empty if it has not started, an error if the folder holds another experiment."""
    path = folder / "trials" / name
    if not (path / "config.yaml").exists() or not (path / "records.jsonl").exists():
        return []
    check_same(ExperimentConfig.from_yaml(path / "config.yaml"), config, path)
    return read_records(path)


def is_finished(folder: Path, trial: Trial) -> bool:
    """Whether every run of the trial has all its rounds."""
    return all(
        len(records_of(folder, name, config)) > planned_rounds(config.method, config.rounds)
        for name, config in trial.runs.items()
    )


def samples_of(folder: Path, sweep: SweepConfig, closed: Mapping[str, Any]) -> dict[int, Sample]:
    """The samples of a search that have started; `closed` names those that should not continue."""
    assert sweep.search is not None
    found = {}
    for number in range(sweep.search.samples):
        name = f"sample{number:03d}"
        file = folder / "trials" / f"{name}-seed{sweep.seeds[0]}" / "config.yaml"
        if not file.exists():
            continue
        kept = dict(leaves(ExperimentConfig.from_yaml(file).model_dump()))
        values = {key: kept[key] for key in sweep.search.space}
        trial = sample_trial(sweep, number, values)
        runs = [records_of(folder, *run) for run in trial.runs.items()]
        objective, finished = _objective(runs, sweep.search.objective), is_finished(folder, trial)
        ended = finished or name in closed
        stopped = None if finished else min(len(run) for run in runs) - 1
        found[number] = Sample(values, objective if ended else None, stopped, ended)
    return found


def _objective(runs: Sequence[Sequence[Record]], measure: str) -> float | None:
    """The mean over the runs, in the last round that all of them have."""
    rounds = min(len(run) for run in runs)
    return float(np.mean([getattr(run[rounds - 1], measure) for run in runs])) if rounds else None


def unfinished(folder: Path, trials: Sequence[Trial], again: bool) -> list[Trial]:
    """Those that are left to run; failed ones are if they are run `again`."""
    last = Journal(folder / "events.jsonl").last()
    failed = {name for name, event in last.items() if event["event"] == "trial failed" and not again}
    return [trial for trial in trials if trial.name not in failed and not is_finished(folder, trial)]


def check_folder(folder: Path) -> None:
    """Raise unless the folder is empty or a sweep's."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is not a folder; choose another with --out.")
    others = {path.name for path in folder.iterdir()} - {"id", "lock"} if folder.is_dir() else set()
    if others and not (folder / "sweep.yaml").exists():
        raise UserError(f"{folder} is not the folder of a sweep: it has files but no sweep.yaml.")

"""The results of a sweep in one table: mean ± standard error over seeds."""

from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.table import Table
from scipy.stats import sem

from distpaml.catalogue import HEADLINES
from distpaml.config import ExperimentConfig
from distpaml.errors import UserError
from distpaml.records import read_records
from distpaml.rounds import Record


def results_table(folder: Path) -> Table:
    """One row per group of runs that differ only in their seed; unfinished runs are left out."""
    groups: dict[str, list[list[Record]]] = defaultdict(list)
    for path in sorted((folder / "trials").glob("*/records.jsonl")):
        try:
            records, config = read_records(path.parent), ExperimentConfig.from_yaml(path.parent / "config.yaml")
        except UserError:
            continue
        if records:
            groups[path.parent.name.removesuffix(f"-seed{config.seed}")].append(records)
    table = Table("runs", "seeds", "round", "tasks", *HEADLINES)
    for name, runs in groups.items():
        last = max(len(run) for run in runs) - 1
        complete = [run for run in runs if len(run) > last]
        cells = (_cell([getattr(run[last], measure) for run in complete]) for measure in HEADLINES)
        seeds = str(len(runs)) if len(complete) == len(runs) else f"{len(complete)} of {len(runs)}"
        table.add_row(name, seeds, str(last), str(complete[0][last].tasks), *cells)
    return table


def _cell(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f} ± {sem(values):.4f}"

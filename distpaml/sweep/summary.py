"""How a sweep ends: a table of its groups with the best marked, and the commands that come next."""

import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from distpaml.catalogue import HEADLINES, METHODS, SHORT_UNITS
from distpaml.command_line import shown_path
from distpaml.durable_io import write_durably
from distpaml.errors import UserError, printable
from distpaml.results import results
from distpaml.sweep.schema import SearchConfig
from distpaml.sweep.storage import Storage

if TYPE_CHECKING:
    from pandas import DataFrame

NOTE = "* best, the oracle aside; ± is the standard error over seeds."


def groups_of(folder: Path, search: SearchConfig | None = None) -> "DataFrame":
    """A row per group of runs that differ only in their seed, best first; unfinished seeds are left out."""
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page lists damaged runs
        table = results(folder)
    columns = list(table.columns)
    varied = columns[columns.index("seed") + 1 : columns.index("run")]
    if search is not None:
        table["sample"] = table["run"].str.partition("-")[0]
        varied = ["sample", *(key for key in search.space if key in varied)]
    keys = ["experiment", "method", *varied]
    rows = []
    for values, group in table.groupby(keys, sort=False, dropna=False):
        last = group[group["round"] == group["round"].max()]
        seeds, complete = group["seed"].nunique(), len(last)
        row: dict[str, Any] = dict(zip(keys, values, strict=True))
        row |= {"seeds": str(seeds) if complete == seeds else f"{complete} of {seeds}", "tasks": last["tasks"].iloc[0]}
        row |= {name: last[name].mean() for name in HEADLINES} | {f"{name}±": last[name].sem() for name in HEADLINES}
        rows.append(row | {"added": last["added"].iloc[0]})
    objective = search.objective if search else "rmse"
    return pandas.DataFrame(rows).sort_values(["experiment", objective], kind="stable", ignore_index=True)


def results_table(groups: "DataFrame", width: int) -> Table:
    """The groups as wide as the terminal allows: names are never cut, the paper's measures go first."""
    wide, narrow = (_table(groups, measures) for measures in (HEADLINES, HEADLINES[:2]))
    console = Console(width=1000)
    return wide if Measurement.get(console, console.options, wide).maximum <= width else narrow


def _table(groups: "DataFrame", measures: tuple[str, ...]) -> Table:
    names = list(groups.columns[: groups.columns.get_loc("seeds")])
    if groups["experiment"].nunique() == 1:
        names.remove("experiment")
    table = Table(title=escape(groups["experiment"].iloc[0]) if "experiment" not in names else None)
    for name in names:
        table.add_column(name, overflow="fold")
    table.add_column("seeds", no_wrap=True)
    table.add_column("tasks", no_wrap=True)
    for measure in measures:
        table.add_column(f"{measure}\n{SHORT_UNITS[measure.partition('_')[0]]}", no_wrap=True)
    for _, row in groups.iterrows():
        cells = [_cell(row, measure, _is_best(groups, row, measure)) for measure in measures]
        table.add_row(*(escape(printable(str(row[name]))) for name in names), row["seeds"], str(row["tasks"]), *cells)
    return table


def _is_best(groups: "DataFrame", row: Any, measure: str) -> bool:
    """Among the groups of the experiment that added as many tasks; the oracle adds none."""
    rivals = groups[(groups["experiment"] == row["experiment"]) & groups["method"].map(_adds)]
    rivals = rivals[rivals["added"] == rivals["added"].max()]
    return row.name in rivals.index and len(rivals) > 1 and row[measure] == rivals[measure].min()


def _adds(method: str) -> bool:
    return method not in METHODS or METHODS[method].has_rounds


def _cell(row: Any, measure: str, best: bool) -> Text:
    error = row[f"{measure}±"]
    value = f"{row[measure]:.4f}" if error != error else f"{row[measure]:.4f} ± {error:.4f}"
    return Text(f"{value} *", style="bold") if best else Text(value)


def best_sample(groups: "DataFrame", search: SearchConfig, experiment: str) -> Iterator[str]:
    """The best configuration of a search, as a command that runs it."""
    complete = groups[groups["added"] == groups["added"].max()]
    best = complete.loc[complete[search.objective].idxmin()]
    values = " ".join(shlex.quote(f"{key}={best[key]}") for key in search.space if key in best)
    yield f"Best: {best['sample']}, {search.objective} {best[search.objective]:.4f}"
    yield f"Run it: python -m distpaml.run {shlex.quote(experiment)} method={best['method']} {values}"


def next_commands(storage: Storage) -> Iterator[str]:
    """What one does with a sweep that has ended, ready to be copied."""
    where = shlex.quote(storage.shown)
    yield "Next:"
    if not storage.remote:
        yield f"  python -m distpaml.results {where} --out all.csv"
        yield f"  tensorboard --logdir {where}/tensorboard"
        if list((storage.local / "wandb").glob("offline-run-*")):
            yield f"  wandb sync --yes {where}/wandb/offline-run-*"
    yield f"  python -m distpaml.sweep --resume {where}"
    yield "--resume runs what is left; with seeds=20 or rounds=30 it extends the sweep."


def folder_readme(name: str) -> str:
    """What lies in the folder of a sweep and how to look at it, for whoever finds it later."""
    return f"""# The sweep {name}

Commands to be run in this folder:

    tensorboard --logdir tensorboard
    wandb sync --yes wandb/offline-run-*
    python -m distpaml.results . --out all.csv
    python -m distpaml.report .
    python -m distpaml.sweep --resume .

TensorBoard is installed with `pip install tensorboard`; `wandb sync` uploads what was logged offline.
`trials/` has a run per trial, `sweep.yaml` the sweep, `events.jsonl` what happened, `report/index.html` the page.
"""


def print_summary(storage: Storage, search: SearchConfig | None, experiment: str, console: Console) -> None:
    """The table, the best configuration of a search, the report and what comes next."""
    from distpaml.report import write_report

    storage.pull("trials")
    try:
        groups = groups_of(storage.local, search)
    except UserError:
        console.print("No round is finished yet.")
        return
    table = results_table(groups, console.width)
    console.print(table)
    if any(" *" in str(cell) for column in table.columns for cell in column.cells):
        console.print(Text(NOTE))
    report = write_report([storage.local], storage.local / "report")
    write_durably(storage.local / "README.md", folder_readme(storage.local.name).encode())
    storage.push("events.jsonl", "report", "README.md")
    best = best_sample(groups, search, experiment) if search else ()
    for line in (*best, f"Report: {shown_path(report)}", *next_commands(storage)):
        console.print(line, soft_wrap=True, markup=False)

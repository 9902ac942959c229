"""Results as one tidy table: `distpaml.results(DIR…)`, or `python -m distpaml.results DIR… --out results.parquet`.

A row is a round of a run; with `choices` it is a task that a round added. Columns are

    experiment, method, preset, seed   which run, and every other key of its config in which the runs differ
    run, round, tasks, added     its directory's name, the round, tasks known by then, those added after round 0
    rmse, nll, coverage, …       the measures of `distpaml.catalogue`
    terms.elbo, seconds.fit, versions.commit, …   everything else of a record, by its path
    pole_mass, …, h1, …, utility, repeats   with `choices`: the task's parameters, its candidate's latent and utility,
                                 and the number of the known task that it nearly repeats

A parquet file holds choices and configs too (see `distpaml.report.archive`), so reading it is like reading the sweep.
`import distpaml; distpaml.results(…)` works although this is also a module: the module can be called.
"""

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from distpaml.command_line import Parser, called, print_data, say
from distpaml.durable_io import read_regular, write_durably
from distpaml.errors import UserError, printable

if TYPE_CHECKING:
    from pandas import DataFrame

    from distpaml.report.collect import Run

Source = str | PathLike[str]
FORMATS = (".csv", ".parquet")
TEXTS = ("experiment", "method", "preset", "run", "versions.")
"""How columns begin whose texts may look like numbers, such as the commit 567975118e81."""
PRIVATE = ("out", "runtime", "rounds")
"""Keys of a config that may differ between two records of the same run."""


def results(sources: Source | Sequence[Source], choices: bool = False) -> "DataFrame":
    """The rounds of all runs in sweeps, run directories, folders of them, `records.jsonl` files, or files of results.

    With `choices`, one row per task that a round added. A damaged run is left out with a warning.
    """
    import pandas

    from distpaml.report.archive import OWN

    given = [sources] if isinstance(sources, str | PathLike) else list(sources)
    if not given:
        raise UserError("There is nothing to read: the list of sweeps, runs and files is empty.")
    tables = [_csv(Path(source), choices) for source in given if Path(source).suffix == ".csv"]
    if others := [Path(source) for source in given if Path(source).suffix != ".csv"]:
        rows = _rows(_collected(others))
        tables.insert(0, pandas.DataFrame(_choices(rows) if choices else rows).drop(columns=list(OWN)))
    return tables[0] if len(tables) == 1 else pandas.concat(tables, ignore_index=True)


def _csv(path: Path, choices: bool) -> "DataFrame":
    import pandas

    try:
        contents = read_regular(path)
        names = [name for name in pandas.read_csv(BytesIO(contents), nrows=0) if name.startswith(TEXTS)]
        table = pandas.read_csv(BytesIO(contents), dtype=dict.fromkeys(names, str))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if ("task" in table) != choices:
        has, asked = ("chosen task", "round") if "task" in table else ("round", "chosen task")
        raise UserError(f"{path} has a row per {has}, not per {asked}; read the runs themselves or a parquet file.")
    return table


def _collected(sources: Sequence[Path]) -> list["Run"]:
    """All readable runs; warns of the others."""
    from distpaml.report.collect import collect

    paths = [path.parent if path.name == "records.jsonl" else path for path in sources]
    for path in paths:
        if not os.path.isdir(path) and not (os.path.isfile(path) and path.suffix in FORMATS):
            raise UserError(
                f"{path} is not a directory of a sweep or a run, nor a .csv or .parquet file of results."
                if path.suffix not in FORMATS
                else f"{path} is not a file; name one that python -m distpaml.results wrote."
            )
    found = collect(paths)
    for problem in found.problems:
        warnings.warn(printable(f"{problem.path}: {problem.said}"), stacklevel=3)
    if not found.runs:
        raise UserError(f"{', '.join(map(str, paths))} has no run with a finished round.")
    return found.runs


def _rows(runs: Sequence["Run"]) -> list[dict[str, Any]]:
    """The columns of every round, with those that only files have."""
    from distpaml.report.groups import variants

    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(run.experiment for run in runs):
        same = [run for run in runs if run.experiment == name]
        for run, varied in zip(same, variants(same), strict=True):
            rows += _rounds(run, varied)
    return rows


def _rounds(run: "Run", varied: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from distpaml.config.load import leaves

    preset = varied.pop("model.preset", None) or run.config.get("model", {}).get("preset", "distpaml")
    who = {"experiment": run.experiment, "method": run.method, "preset": preset, "seed": run.seed, **varied}
    config = json.dumps(run.config)
    for record, added in zip(run.records, run.added, strict=True):
        plain = record.model_dump(exclude={"added"})
        counts = {"round": plain.pop("round"), "tasks": plain.pop("tasks"), "added": added}
        plain["candidates"] = plain.pop("candidates") or {}
        flat = {path: value for path, value in leaves(plain) if value != {}}
        chosen = [added.model_dump() for added in record.added]
        yield who | {"run": run.name} | counts | flat | {"chosen": chosen, "config": config}


def _choices(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    task = 0
    for row in rows:
        config = json.loads(row["config"])
        box, extra = list(config["domain"]["box"]), list(config["descriptor"].get("superfluous") or {})
        task = 0 if row["round"] == 0 else task
        for chosen in row["chosen"]:
            shown = dict(zip(box, chosen["task"], strict=True))
            shown |= dict(zip(extra, chosen["descriptor"][len(box) :], strict=False))
            latent = {f"h{q + 1}": value for q, value in enumerate(chosen["latent"] or ())}
            yield row | {"task": task} | shown | latent | {key: chosen[key] for key in ("utility", "repeats")}
            task += 1


def merged(kept: Sequence["Run"], new: Sequence["Run"]) -> list["Run"]:
    """All runs in a fixed order; where both have the same run, its records in `new`."""
    runs = {_identity(run): run for run in (*kept, *new)}
    return [runs[identity] for identity in sorted(runs)]


def _identity(run: "Run") -> tuple[str, str, int, str]:
    """Of a run: its config and its first tasks. Those of a design depend on how many rounds it was begun with."""
    config = {key: value for key, value in run.config.items() if key not in PRIVATE}
    first = [added.task for added in run.records[0].added]
    return run.experiment, run.method, run.seed, json.dumps([config, first], sort_keys=True)


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=called("results"), description="The results of runs and sweeps as a table.")
    parser.add_argument("sources", nargs="+", metavar="DIR", help="a sweep, a run, a file of results, or a folder")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="a .csv or .parquet file, or a folder with a parquet file per experiment, to which the runs are added "
        "(default: csv, printed)",
    )
    parser.add_argument("--choices", action="store_true", help="a row per chosen task instead of a row per round")
    parser.add_argument("--commit", metavar="COMMIT", help="that of the code, for runs that did not record it")
    options = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
            _write(options.sources, options.out, options.choices, options.commit)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _write(sources: list[str], out: Path | None, choices: bool, commit: str | None) -> None:
    from distpaml.report.archive import file_name

    folder = out is not None and (os.path.isdir(out) or not out.suffix)
    if out is not None and not folder and out.suffix not in FORMATS:
        raise UserError(f"--out is {out}, but should end in {' or '.join(FORMATS)}.")
    if folder and choices:
        raise UserError(f"--out is the folder {out}, whose files hold choices anyway; leave --choices out.")
    try:
        if out is None:
            print_data(results(sources, choices).to_csv(index=False))
        elif choices or out.suffix == ".csv":
            table = results(sources, choices)
            out.parent.mkdir(parents=True, exist_ok=True)
            csv = out.suffix == ".csv"
            write_durably(out, table.to_csv(index=False).encode() if csv else table.to_parquet(None, index=False))
            say(f"{len(table)} rows, {len(table.columns)} columns: {out}")
        else:
            runs = [_with_commit(run, commit) for run in _collected([Path(source) for source in sources])]
            if folder:
                for name in dict.fromkeys(run.experiment for run in runs):
                    file = out / f"{file_name(name)}.parquet"
                    _archive(file, merged(_kept(file), [run for run in runs if run.experiment == name]))
            else:
                _archive(out, runs)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror or error}.") from error


def _kept(file: Path) -> Sequence["Run"]:
    """The runs of a file that is about to be replaced, which must lose none."""
    from distpaml.report.collect import collect

    found = collect([file] if file.exists() else [])
    if found.problems:
        said = found.problems[0].said.removeprefix("It is left out. ").rstrip(".")
        raise UserError(f"Replacing {file} would lose what it has: {said}; move it away or choose another --out.")
    return found.runs


def _with_commit(run: "Run", commit: str | None) -> "Run":
    given = {"versions": {"commit": commit}}
    records = [record if record.versions or not commit else record.model_copy(update=given) for record in run.records]
    return replace(run, records=records)


def _archive(file: Path, runs: Sequence["Run"]) -> None:
    from distpaml.report.archive import write_archive

    rows = _rows(runs)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_archive(file, rows)
    say(f"{len(rows)} rows, {len(runs)} runs: {file}")


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> "DataFrame":
        return results(*arguments, **options)


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    sys.exit(main())

"""Results as one tidy table: `distpaml.results(DIR…)`, or `python -m distpaml.results DIR… --out results.parquet`.

A row is a round of a run; with `choices` it is a task that a round added. Columns are

    experiment, method, seed     which run, and every other key of its config in which the runs differ
    run, round, tasks, added     its directory's name, the round, tasks known by then, those added after round 0
    rmse, nll, coverage, …       the measures of `distpaml.catalogue`
    terms.elbo, seconds.fit, …   everything else of a record, by its path
    pole_mass, …, h1, …, utility, repeats   with `choices`: the task's parameters, its candidate's latent and utility,
                                 and the number of the known task that it nearly repeats

`import distpaml; distpaml.results(…)` works although this is also a module: the module can be called.
"""

import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from distpaml.command_line import called
from distpaml.errors import UserError

if TYPE_CHECKING:
    from pandas import DataFrame

    from distpaml.report.collect import Run

Source = str | PathLike[str]
FORMATS = (".csv", ".parquet")


def results(sources: Source | Sequence[Source], choices: bool = False) -> "DataFrame":
    """The rounds of all runs in sweeps, run directories, folders of them, or `records.jsonl` files.

    With `choices`, one row per task that a round added. A damaged run is left out with a warning.
    """
    import pandas

    from distpaml.report.collect import collect
    from distpaml.report.groups import variants

    given = [sources] if isinstance(sources, str | PathLike) else list(sources)
    paths = [path.parent if path.name == "records.jsonl" else path for path in map(Path, given)]
    if missing := next((path for path in paths if not path.is_dir()), None):
        raise UserError(f"{missing} is not a directory; name that of a sweep or of a run.")
    found = collect(paths)
    for problem in found.problems:
        warnings.warn(f"{problem.path}: {problem.said}", stacklevel=2)
    if not found.runs:
        raise UserError(f"{', '.join(map(str, paths))} has no run with a finished round.")
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(run.experiment for run in found.runs):
        runs = [run for run in found.runs if run.experiment == name]
        for run, varied in zip(runs, variants(runs), strict=True):
            rows += _rows(run, varied, choices)
    return pandas.json_normalize(rows)


def _rows(run: "Run", varied: dict[str, Any], choices: bool) -> Iterator[dict[str, Any]]:
    who = {"experiment": run.experiment, "method": run.method, "seed": run.seed, **varied, "run": run.name}
    task = 0
    for record, added in zip(run.records, run.added, strict=True):
        plain = record.model_dump(exclude={"added", "candidates"})
        counts = {} if record.candidates is None else {"candidates": vars(record.candidates)}
        row = who | {"round": plain.pop("round"), "tasks": plain.pop("tasks"), "added": added} | plain | counts
        if not choices:
            yield row
        for chosen in record.added if choices else ():
            box, extra = list(run.config["domain"]["box"]), list(run.config["descriptor"].get("superfluous") or {})
            shown = dict(zip(box, chosen.task, strict=True))
            shown |= dict(zip(extra, chosen.descriptor[len(box) :], strict=False))
            latent = {f"h{q + 1}": value for q, value in enumerate(chosen.latent or ())}
            yield row | {"task": task} | shown | latent | {"utility": chosen.utility, "repeats": chosen.repeats}
            task += 1


def main(arguments: list[str] | None = None) -> int:
    parser = ArgumentParser(prog=called("results"), description="The results of runs and sweeps as a table.")
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a sweep, a run, or a folder of them")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a .csv or .parquet file (default: csv, printed)")
    parser.add_argument("--choices", action="store_true", help="a row per chosen task instead of a row per round")
    options = parser.parse_args(arguments)
    try:
        if options.out is not None and options.out.suffix not in FORMATS:
            raise UserError(f"--out is {options.out}, but should end in {' or '.join(FORMATS)}.")
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
            table = results(options.directories, options.choices)
        _write(table, options.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _write(table: "DataFrame", out: Path | None) -> None:
    if out is None:
        print(table.to_csv(index=False), end="")
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix == ".csv":
            table.to_csv(out, index=False)
        else:
            table.to_parquet(out, index=False)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror or error}.") from error
    print(f"{len(table)} rows, {len(table.columns)} columns: {out}")


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> "DataFrame":
        return results(*arguments, **options)


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    sys.exit(main())

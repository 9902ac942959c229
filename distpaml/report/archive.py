"""Runs in one file: a parquet table with a row per round, from which the runs can be read back without their arrays.

    experiment, method, preset, seed, run    which run; further keys in which the runs of the file differ
    round, tasks, added, rmse, …, terms.elbo, seconds.fit, versions.commit, …   its record, by path
    chosen     the tasks that the round added: descriptor, task (true parameters), latent, utility, foreseen, repeats
    config     the run's config as JSON

Any reader of parquet can use the columns. `read_archive` uses `chosen`, `config` and those of the record.
"""

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet
from pydantic import ValidationError

from distpaml.durable_io import read_regular, write_durably
from distpaml.errors import UserError
from distpaml.rounds import Record

Row = dict[str, Any]
SUFFIX = ".parquet"
OWN = ("chosen", "config")
"""Columns that are there to read the runs back."""
_NUMBERS = pyarrow.list_(pyarrow.float64())
_CHOSEN = pyarrow.list_(
    pyarrow.struct(
        {
            **dict.fromkeys(("descriptor", "task", "latent", "foreseen"), _NUMBERS),
            "utility": pyarrow.float64(),
            "repeats": pyarrow.int64(),
        }
    )
)


def file_name(experiment: str) -> str:
    """A valid file name: letters, digits, and dashes for the rest."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in experiment)[:80]


def write_archive(path: Path, rows: Sequence[Row]) -> None:
    """Write the rounds of runs, those of a run one after the other."""
    names = [*dict.fromkeys(name for row in rows for name in row if name not in OWN), *OWN]
    table = pyarrow.table({name: _column(name, [row.get(name) for row in rows]) for name in names})
    buffer = BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    write_durably(path, buffer.getvalue())


def read_archive(path: Path) -> Iterator[tuple[str, dict[str, Any], list[Record]]]:
    """Name, config and records of every run in the file."""
    try:
        rows = parquet.read_table(BytesIO(read_regular(path))).to_pylist()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or 'it is not a parquet file'}.") from error
    except pyarrow.ArrowException as error:
        raise UserError(f"{path} cannot be read: it is not a parquet file.") from error
    if rows and (missing := next((name for name in ("run", "round", *OWN) if name not in rows[0]), None)):
        raise UserError(
            f"{path} is not a file of runs: it has no column {missing}; write it again with python -m distpaml.results."
        )
    begins = [number for number, row in enumerate(rows) if row["round"] == 0]
    if begins[:1] != [0]:
        raise UserError(f"{path} is not a file of runs: its first row is not of round 0.")
    for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
        try:
            records = [_record(row) for row in rows[begin:end]]
            yield str(rows[begin]["run"]), json.loads(rows[begin]["config"]), records
        except (ValidationError, ValueError, TypeError) as error:
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise UserError(f"{path} was written by another version of distpaml: row {begin}: {said}.") from error


def _column(name: str, values: list[Any]) -> pyarrow.Array:
    if name == "chosen":
        return pyarrow.array(values, _CHOSEN)
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # values of several types, such as auto and 300
        return pyarrow.array([None if value is None else json.dumps(value) for value in values])


def _record(row: Row) -> Record:
    tree: Row = {"shots": {}, "terms": {}, "seconds": {}, "candidates": None}
    for name, value in row.items():
        *folders, leaf = name.split(".")
        if value is None or name == "added" or (folders or [leaf])[0] not in Record.model_fields:
            continue
        place = tree
        for folder in folders:
            place[folder] = place.get(folder) or {}
            place = place[folder]
        place[leaf] = value
    if tree["candidates"] is not None:
        tree["candidates"].setdefault("fallback", None)
    return Record.model_validate(tree | {"added": row["chosen"]})

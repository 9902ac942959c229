"""Files from a data logger as columns by name: csv, npz or parquet. No pickle is read."""

import csv
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distpaml.errors import UserError

Columns = dict[str, NDArray[Any]]

DECIMAL_COMMA = re.compile(r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$")
LARGEST = 200_000_000
"""Bytes of a file."""


def read_table(source: str | Path) -> Mapping[str, Any]:
    """What a file has by name; text stays text."""
    path = Path(source)
    readers = {".csv": _csv, ".npz": _npz, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path} should be a file that ends in {', '.join(readers)}.")
    try:
        if path.stat().st_size > LARGEST:
            raise UserError(f"{path} has more than {LARGEST // 10**6} MB; cut it into trajectories.")
        return reader(path)
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or ' '.join(str(error).split())[:200]}.") from error


def columns_of(table: Mapping[str, Any], names: Iterable[str], where: str) -> Columns:
    """Some of the columns of a table, of one length."""
    columns = {name: _column(table[name], name, where) for name in names}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lambda n: lengths[n]), max(lengths, key=lambda n: lengths[n])
        raise UserError(
            f"{where} has columns of different lengths: {lengths[short]} rows of {short}, {lengths[long]} of {long}."
        )
    return columns


def _column(values: Any, name: str, where: str) -> NDArray[Any]:
    try:
        column = np.asarray(values)
    except ValueError:
        column = np.empty((0, 0))
    if column.ndim != 1:
        raise UserError(f"In {where}, {name} should be one column of values.")
    return column


def _csv(path: Path) -> Mapping[str, Any]:
    """Cells as text. The separator is the one of comma, semicolon and tab that the header has most of; where it is not
    the comma, commas within numbers are decimal points."""
    text = path.read_text(encoding="utf-8-sig")
    separator = max(",;\t", key=text.partition("\n")[0].count)
    try:
        header, *rows = list(csv.reader(text.splitlines(keepends=True), delimiter=separator)) or [[]]
    except csv.Error as error:
        raise UserError(f"{path} is not a csv table: {error}.") from error
    while rows and not any(cell.strip() for cell in rows[-1]):
        rows.pop()
    if separator != ",":
        rows = [[DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in row] for row in rows]
    names = [name.strip() for name in header]
    for name in names:
        if name and names.count(name) > 1:
            raise UserError(f"{path} has two columns named {name[:40]!r}.")
    for number, row in enumerate(rows, start=1):
        if row and len(row) != len(names):
            raise UserError(f"{path} has {len(row)} cells in row {number}, but {len(names)} in its header.")
    columns = zip(*(row or [""] * len(names) for row in rows), strict=True) if rows else ([] for _ in names)
    return {name: np.array(column, dtype=object) for name, column in zip(names, columns, strict=True) if name}


def _npz(path: Path) -> Mapping[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, TypeError) as error:
        raise UserError(f"{path} is not an npz file of plain arrays: {' '.join(str(error).split())[:200]}.") from error


def _parquet(path: Path) -> Mapping[str, Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path, partitioning=None)
        return {name: table[name].to_numpy() for name in table.column_names}
    except (pyarrow.ArrowException, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{path} is not a parquet file: {' '.join(str(error).split())[:200]}.") from error

"""Files from a data logger as columns by name: csv, npz or parquet. No pickle is read."""

import csv
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distpaml.durable_io import read_regular
from distpaml.errors import UserError

Columns = dict[str, NDArray[Any]]

DECIMAL_COMMA = re.compile(r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$")
LARGEST, UNPACKED = 50_000_000, 400_000_000
"""Bytes of a file, as it is and once unpacked, so that reading takes seconds."""
MOST_COLUMNS, MOST_ROWS = 10_000, 1_000_000


def read_table(source: str | Path) -> Mapping[str, Any]:
    """What a file has by name; text stays text."""
    path = Path(source)
    readers = {".csv": _csv, ".npz": _npz, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path} should be a file that ends in {', '.join(readers)}.")
    try:
        table = reader(read_regular(path, LARGEST), path)
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or ' '.join(str(error).split())[:200]}.") from error
    _check_columns(len(table), path)
    return table


def _check_columns(count: int, path: Path) -> None:
    if count > MOST_COLUMNS:
        raise UserError(f"{path} has {count} columns, and more than {MOST_COLUMNS} are too many; leave some out.")


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
    if isinstance(values, np.ma.MaskedArray):  # what is masked is missing
        hidden, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[hidden] = None
    try:
        column = np.asarray(values)
    except ValueError:
        column = np.empty((0, 0))
    if column.ndim != 1:
        raise UserError(f"In {where}, {name} should be one column of values.")
    return column


def _csv(contents: bytes, path: Path) -> Mapping[str, Any]:
    """Cells as text. The separator is the one of comma, semicolon and tab that the header has most of; where it is not
    the comma, commas within numbers are decimal points."""
    text = contents.decode("utf-8-sig")
    if text.count("\n") > MOST_ROWS + 1:
        raise UserError(f"{path} has more than {MOST_ROWS} rows; cut it into trajectories.")
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    _check_columns(first.count(separator) + 1, path)
    try:
        header, *rows = list(csv.reader(StringIO(text, newline=""), delimiter=separator)) or [[]]
    except csv.Error as error:
        raise UserError(f"{path} is not a csv table: {error}.") from error
    while rows and not any(cell.strip() for cell in rows[-1]):
        rows.pop()
    if separator != ",":
        rows = [[DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in row] for row in rows]
    names = [name.strip() for name in header]
    for name, times in Counter(names).items():
        if name and times > 1:
            raise UserError(f"{path} has two columns named {name[:40]!r}.")
    for number, row in enumerate(rows, start=1):
        if row and len(row) != len(names):
            raise UserError(f"{path} has {len(row)} cells in row {number}, but {len(names)} in its header.")
    columns = zip(*(row or [""] * len(names) for row in rows), strict=True) if rows else ([] for _ in names)
    return {name: np.array(column, dtype=object) for name, column in zip(names, columns, strict=True) if name}


def _npz(contents: bytes, path: Path) -> Mapping[str, Any]:
    try:
        return unpacked(contents)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, TypeError) as error:
        raise UserError(f"{path} is not an npz file of plain arrays: {' '.join(str(error).split())[:200]}.") from error


def unpacked(contents: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file, which may claim any size, and be compressed a thousandfold."""
    with zipfile.ZipFile(BytesIO(contents)) as archive:
        if sum(member.file_size for member in archive.infolist()) > UNPACKED:
            raise ValueError(f"unpacked it has more than {UNPACKED / 1e6:g} MB")
    try:
        with np.load(BytesIO(contents), allow_pickle=False) as arrays:
            return dict(arrays)
    except (MemoryError, OverflowError) as error:
        raise ValueError("an array claims to be larger than the memory") from error


def _parquet(contents: bytes, path: Path) -> Mapping[str, Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(BytesIO(contents))
        if file.metadata.num_rows * file.metadata.num_columns * 8 > UNPACKED:
            raise ValueError(f"unpacked it has more than {UNPACKED / 1e6:g} MB")
        table = file.read()
        return {name: table[name].to_numpy() for name in table.column_names}
    except (pyarrow.ArrowException, ValueError, TypeError, KeyError, MemoryError) as error:
        raise UserError(f"{path} is not a parquet file: {' '.join(str(error).split())[:200]}.") from error

"""Trajectories as they come from hardware → pieces without gaps that the model can use, or a sentence.

- A sample without a number in every column is missing: the trajectory is cut there. Neighbours are linked if they are
  at most 1.5 dt apart, and a piece is a run of linked samples.
- Rows of a piece that are not dt apart are resampled: states along straight lines, controls as their mean over the
  step, so that their effect stays the same. Rows that are typically further apart than dt are refused.
- An angle that stays within one turn is unwrapped; one that leaves it is taken as it is.
- A value that leaps away from both its neighbours, ten times further than nine steps of ten go, is an outlier.

Whatever is refused or cut is named by its row; row 1 is the first below the header.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distpaml.ask_tell.declaration import RESERVED, Declaration
from distpaml.ask_tell.samples import JITTER, LONGEST_GAP, linked_runs, outliers, resampled, row_words
from distpaml.ask_tell.tables import columns_of, read_table
from distpaml.command_line import counted
from distpaml.data import transitions
from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.types import Array

LARGEST_VALUE = 1e9
MISSING = ("", "nan", "na", "null", "none", "-")
"""Texts for a value that is not there."""
LONGEST = 10_000
"""Transitions of one trajectory at most: the price of a fit grows with them."""

Source = str | PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Recording:
    """What was observed of one task, in the model's units: angles in radians, unwrapped."""

    states: tuple[Array, ...]  # pieces of [T_i + 1, D]
    controls: tuple[Array, ...]  # [T_i, U]
    notes: tuple[str, ...] = ()
    """What was done to it, in sentences."""

    @property
    def transitions(self) -> int:
        return sum(map(len, self.controls))

    def rows(self, angles: Sequence[int]) -> tuple[Array, Array]:
        """Inputs [T, dx] and targets [T, D] of all pieces."""
        parts = [transitions(*piece, angles) for piece in zip(self.states, self.controls, strict=True)]
        inputs, targets = zip(*parts, strict=True)
        return np.concatenate(inputs), np.concatenate(targets)

    @classmethod
    def joined(cls, parts: Sequence["Recording"]) -> "Recording":
        """Several recordings of the same task."""
        return cls(
            tuple(piece for part in parts for piece in part.states),
            tuple(piece for part in parts for piece in part.controls),
            tuple(note for part in parts for note in part.notes),
        )


def record(source: Any, declaration: Declaration) -> Recording:
    """A file, a mapping of columns, a data frame, or a list of such things, all of one task."""
    recording = _recorded(source, declaration)
    inputs = len(declaration.states) + len(declaration.angles) + len(declaration.controls)
    if recording.transitions > inputs:
        return recording
    note = (
        f"{counted(recording.transitions, 'transition')} can hardly teach anything: with {inputs} inputs even a linear "
        f"model needs {inputs + 1}. Record longer."
    )
    return replace(recording, notes=(*recording.notes, note))


def _recorded(source: Any, declaration: Declaration) -> Recording:
    if isinstance(source, list | tuple):
        if not source:
            raise UserError("There is no trajectory in an empty list.")
        return Recording.joined([_recorded(part, declaration) for part in source])
    if isinstance(source, str | PathLike):
        table, where = read_table(Path(source)), str(source)
    elif isinstance(source, Mapping) or hasattr(source, "columns"):
        table, where = source, "the trajectory"
    else:
        raise UserError(f"A trajectory should be a file or a mapping of columns, not {type(source).__name__}.")
    return _Table(table, where, declaration).recording()


class _Table:
    """The columns of one table that are needed, as numbers."""

    def __init__(self, table: Mapping[str, Any], where: str, declaration: Declaration) -> None:
        self.where, self.declaration = where, declaration
        self.named = self._find(table)
        columns = columns_of(table, self.named.values(), where)
        self.length = len(next(iter(columns.values())))
        self.labels = columns[self.named["trajectory"]] if "trajectory" in self.named else np.zeros(self.length)
        self.numbers = {
            name: self._numbers(name, columns[original])
            for name, original in self.named.items()
            if name != "trajectory"
        }

    def recording(self) -> Recording:
        pieces: list[tuple[Array, Array]] = []
        notes: list[str] = []
        for rows in self._groups():
            found, said = self._pieces(rows)
            pieces += found
            notes += said
        count = sum(len(controls) for _, controls in pieces)
        if not pieces:
            because = f" {notes[0]}" if notes else ""
            raise self._refusal(f"has no two samples in a row that could be used, of {self.length} rows.{because}")
        if count > LONGEST:
            raise self._refusal(
                f"has {count} steps of {self.declaration.dt:g} s, and more than {LONGEST} are too many for one file; "
                "cut it or tell a part of it."
            )
        states, controls = zip(*pieces, strict=True)
        return Recording(states, controls, tuple(f"{self.where}: {note}" for note in notes))

    def _find(self, table: Mapping[str, Any]) -> dict[str, str]:
        """Declared names → columns; a unit may stand behind the name in brackets, and must then be the declared one."""
        d = self.declaration
        found: dict[str, str] = {}
        for original in map(str, table):
            match = re.fullmatch(r"(.*?)(?:[\[(]([^\])]*)[\])])?", original.strip()) if len(original) < 200 else None
            name, unit = (match[1].strip(), match[2]) if match else (original, None)
            if original in (*d.states, *d.controls):
                name, unit = original, None
            if name not in (*d.states, *d.controls, *RESERVED):
                continue
            if name in found:
                raise self._refusal(f"has two columns of {name}: {found[name]} and {original}.")
            declared = d.units.get(name, "rad" if name in d.angles else "s" if name == "time" else unit)
            if unit is not None and unit.strip() != declared:
                raise self._refusal(f"has {name} in {unit.strip() or 'no unit'}, but {declared} was declared.")
            found[name] = original
        for name in (*d.states, *d.controls):
            if name not in found:
                raise self._refusal(f"has no column {name}{nearest(name, map(str, table), 'it has')}.")
        return found

    def _numbers(self, name: str, column: NDArray[Any]) -> Array:
        import pandas

        if column.dtype.kind in "OUST":
            texts = pandas.Series(column, dtype=object)
            try:
                found = pandas.to_numeric(texts, errors="coerce")
            except (TypeError, OverflowError):  # an integer beyond all floats, an object like no number
                found = pandas.Series(dtype=complex)
            if found.dtype.kind == "c":
                raise self._refusal(f"has values of {name} that are not real numbers.")
            numbers = found.to_numpy(float, na_value=np.nan)
            for row in np.flatnonzero(np.isnan(numbers) & texts.notna().to_numpy(bool)):
                if (text := str(column[row])).strip().lower() not in MISSING:
                    raise self._refusal(f"has {name} = {text[:40]!r} in row {row + 1}, which is not a number.")
        elif column.dtype.kind in "buif":
            numbers = column.astype(float)
        else:
            raise self._refusal(f"has {name} as {column.dtype}, but it should be numbers.")
        large = np.abs(numbers) > LARGEST_VALUE
        if large.any():
            raise self._refusal(
                f"has {name} = {numbers[large][0]:g} in {row_words(large)}; nothing beyond {LARGEST_VALUE:g} can be "
                "used."
            )
        return numbers * self.declaration.scale(name)

    def _groups(self) -> Iterator[NDArray[np.int64]]:
        """The rows of each trajectory."""
        import pandas

        labels = pandas.Series(self.labels)
        if labels.isna().any():
            raise self._refusal(f"has no value of trajectory in {row_words(labels.isna().to_numpy())}.")
        try:
            codes, names = pandas.factorize(labels)
        except TypeError as error:
            raise self._refusal("has values of trajectory that are neither numbers nor words.") from error
        if len(names) > LONGEST:
            raise self._refusal(f"has {len(names)} trajectories, and more than {LONGEST} are too many for one file.")
        yield from np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])

    def _pieces(self, rows: NDArray[np.int64]) -> tuple[list[tuple[Array, Array]], list[str]]:
        d = self.declaration
        states, controls = (
            np.stack([self.numbers[name][rows] for name in names], axis=1) if names else np.empty((len(rows), 0))
            for names in (d.states, d.controls)
        )
        controls[-1:][np.isnan(controls[-1:])] = 0.0  # nothing follows it
        time = self._time(rows)
        good = np.asarray(np.isfinite(np.hstack([states, controls])).all(axis=1))
        notes = []
        if not good.all():
            notes.append(f"{row_words(~good, rows)} had missing values, so the trajectory is cut there.")
        late = np.append(False, np.diff(time) > LONGEST_GAP * d.dt)
        if late.any():
            notes.append(
                f"{row_words(late, rows)} came more than {LONGEST_GAP:g} steps after the row before, so the trajectory "
                "is cut there."
            )
        leaps = self._unwrapped(states, time, good, rows, notes)
        if leaps.any():
            row, column = np.argwhere(leaps)[0]
            where = row_words(np.asarray(leaps.any(axis=1)), rows)
            said = f"{d.states[column]} in {where} leaps away from its neighbours and back"
            if d.outliers == "refuse":
                value = states[row, column] / d.scale(d.states[column])
                raise self._refusal(
                    f"has an outlier: {said} (first {value:g}); mend it, or let outliers be drop or keep."
                )
            notes.append(f"{said}; it was {'dropped' if d.outliers == 'drop' else 'kept'}.")
            if d.outliers == "drop":
                good &= ~leaps.any(1)
        runs = list(linked_runs(time, good, d.dt))
        regular = [bool(np.all(np.abs(np.diff(time[run]) - d.dt) <= JITTER * d.dt)) for run in runs]
        if not all(regular):
            notes.append(f"rows were not {d.dt:g} s apart, so it was resampled.")
        pieces = [
            (states[run], controls[run][:-1]) if even else resampled(time[run], states[run], controls[run], d.dt)
            for run, even in zip(runs, regular, strict=True)
        ]
        return [piece for piece in pieces if len(piece[1])], notes

    def _time(self, rows: NDArray[np.int64]) -> Array:
        """Seconds of the rows; without a column of times they are dt apart."""
        d = self.declaration
        if "time" not in self.numbers:
            return np.arange(len(rows), dtype=np.float64) * d.dt
        time = self.numbers["time"][rows]
        if np.isnan(time).any():
            raise self._refusal(f"has no time in {row_words(np.isnan(time), rows)}.")
        gaps = np.diff(time)
        if (gaps <= 0).any():
            at = int((gaps <= 0).argmax()) + 1
            raise self._refusal(f"has time = {time[at]:g} in row {rows[at] + 1}, which is not after the row before it.")
        if len(gaps) and np.median(gaps) > (1 + JITTER) * d.dt:
            raise self._refusal(
                f"has rows that are typically {np.median(gaps):g} s apart, but dt is {d.dt:g} s, and what happened in "
                "between is not known; record faster, or check that time is in seconds."
            )
        uneven = np.abs(gaps / d.dt - np.round(gaps / d.dt)) > JITTER
        if d.irregular == "refuse" and uneven.any():
            at = int(uneven.argmax())
            raise self._refusal(
                f"has rows {rows[at] + 1} and {rows[at + 1] + 1} {gaps[at]:g} s apart, but dt is {d.dt:g} s; "
                "let irregular be resample, or record evenly."
            )
        return time

    def _unwrapped(
        self, states: Array, time: Array, good: NDArray[np.bool_], rows: NDArray[np.int64], notes: list[str]
    ) -> NDArray[np.bool_]:
        """Unwrap the angles in `states` [R, D], piece by piece; which values are outliers [R, D]."""
        leaps = np.zeros(states.shape, dtype=bool)
        if not good.any():
            return leaps
        turn, slack = 2 * np.pi, 1e-3
        for column, name in enumerate(self.declaration.states):
            values = states[good, column]
            wrapped = name in self.declaration.angles and (
                np.abs(values).max() <= np.pi + slack or (values.min() >= -slack and values.max() <= turn + slack)
            )
            for run in linked_runs(time, good, self.declaration.dt):
                if wrapped:
                    states[run, column] = np.unwrap(states[run, column])
                    wide = np.flatnonzero(np.abs(np.diff(states[run, column])) > 0.8 * np.pi)
                    if len(wide):
                        notes.append(
                            f"{name} moves by almost half a turn after row {rows[run[wide[0]]] + 1}, so that its "
                            "direction there is a guess."
                        )
                leaps[run, column] = outliers(states[run, column])
        return leaps

    def _refusal(self, said: str) -> UserError:
        return UserError(
            f"{self.where[:1].upper()}{self.where[1:]} {said}" if " " in self.where else f"{self.where} {said}"
        )

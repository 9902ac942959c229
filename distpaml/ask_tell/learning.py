"""What more tasks have brought: errors of left-out tasks (`leave_one_out`) against how many tasks the model had.

Two models, of the first m tasks and of the first n, are compared on the tasks that both know. With e_k(i) the error of
task i, left out of a model of the first k,

    change = exp( mean_i log e_n(i) / e_m(i) ) − 1                  i among the first m

Errors of all known tasks would not do: the newest were chosen because they are hard, so their mean may rise while the
model improves. More tasks still pay if the last ones changed the error by −10 % or more. They have stopped paying if
the last ones did not, were three or more, and even the lower end of the interval is above −25 %.

    learning.json     the errors, beside the journal, with their checksum; they can be computed again
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from distpaml.ask_tell.journal import explained
from distpaml.ask_tell.state import Data
from distpaml.checksums import DamagedError, sealed, verified
from distpaml.durable_io import read_regular, write_durably
from distpaml.types import Array

if TYPE_CHECKING:
    from pandas import DataFrame

BACK = 3
"""Tasks between the two models that are compared, if there are so many."""
PAYS, HIDDEN = -0.1, -0.25
"""A change that is worth a task, and one that should not be hidden in the interval of a smaller one."""
LEAST = 1e-9
"""An error that counts as none."""
SIZES = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
"""Numbers of tasks at which the curve has a point, beside the present one."""


class LearningPoint(BaseModel):
    """The errors of tasks, each predicted by a model of the others."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    data: Data
    """The tasks and their lines in the journal."""
    squares: tuple[tuple[float, ...], ...]
    """Mean squared errors of one-step changes, by task and state, in the model's units."""
    coverage: tuple[float, ...]
    """Share of the changes in their 95 % interval, by task."""
    scale: tuple[float, ...]
    """Standard deviation of the changes in these data, by state."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if {len(self.squares), len(self.coverage)} != {self.tasks} or {*map(len, self.squares)} != {len(self.scale)}:
            raise ValueError("should have errors and a coverage of every task, and a scale of every state")
        return self

    @property
    def tasks(self) -> int:
        return len(self.data)

    def rmse(self, scale: Iterable[float]) -> Array:
        """One error per task [N], in units of `scale`."""
        return np.maximum(np.sqrt((np.array(self.squares) / np.square([*scale])).mean(axis=1)), LEAST)


@dataclass(frozen=True)
class Change:
    """How the error of the known tasks changed with the tasks that followed."""

    tasks: int
    """How many followed."""
    share: float
    low: float
    high: float
    """A 95 % interval over the tasks."""

    @property
    def pays(self) -> bool | None:
        """Whether more tasks still pay; None if that is open."""
        if self.share <= PAYS:
            return True
        return False if self.tasks >= BACK and self.low > HIDDEN else None

    def worded(self) -> str:
        verdict = {
            True: "more tasks still pay",
            False: "more tasks have stopped paying",
            None: "it is open whether more tasks pay",
        }[self.pays]
        last = f"the last {self.tasks}" if self.tasks > 1 else "the last one"
        interval = "" if math.isnan(self.low) else f" ({_percent(self.low)} to {_percent(self.high)})"
        return f"{verdict}: {last} changed the error of the others by {_percent(self.share)}{interval}"


@dataclass(frozen=True, repr=False)
class LearningCurve:
    """Errors against the number of tasks; the last point is the newest."""

    points: tuple[LearningPoint, ...]

    def __repr__(self) -> str:
        return f"<LearningCurve at {', '.join(str(point.tasks) for point in self.points)} tasks. {self.worded()}>"

    def to_frame(self) -> "DataFrame":
        """A row per point: the mean error over the tasks, the worst one's, and the share within 95 % intervals."""
        from pandas import DataFrame, Index

        columns = {
            "rmse": [errors.mean() for errors in self.errors],
            "rmse_worst": [errors.max() for errors in self.errors],
            "coverage": [np.mean(point.coverage) for point in self.points],
        }
        return DataFrame(columns, index=Index([point.tasks for point in self.points], name="tasks"))

    @property
    def last(self) -> LearningPoint:
        return self.points[-1]

    @cached_property
    def errors(self) -> list[Array]:
        """For every point, one error per task, in standard deviations of the one-step changes of all known data."""
        return [point.rmse(self.last.scale) for point in self.points]

    @cached_property
    def change(self) -> Change | None:
        """What the newest tasks brought; None while there is nothing to compare with."""
        before = [k for k, point in enumerate(self.points) if point.tasks < self.last.tasks]
        if not before:
            return None
        earlier = [k for k in before if self.points[k].tasks <= self.last.tasks - BACK]
        k = max(earlier, default=before[0])
        known = self.points[k].tasks
        ratio = np.log(self.errors[-1][:known] / self.errors[k])
        spread = _half_width(ratio)
        share, low, high = (math.expm1(ratio.mean() + shift) for shift in (0.0, -spread, spread))
        return Change(self.last.tasks - known, share, low, high)

    def worded(self) -> str:
        """One line."""
        error, held = self.errors[-1].mean(), 100 * np.mean(self.last.coverage)
        change = self.change.worded() if self.change else "too few tasks to tell whether more of them pay"
        return (
            f"Each of {self.last.tasks} tasks left out: error {error:.3g} std. dev., {held:.0f} % within their 95 % "
            f"intervals; {change}."
        )


class LearningFile:
    """The points that were computed so far."""

    _POINTS: TypeAdapter[list[LearningPoint]] = TypeAdapter(list[LearningPoint])

    def __init__(self, folder: Path) -> None:
        self.file = folder / "learning.json"

    def curve(self, data: Data) -> LearningCurve | None:
        """Of these data: points of their first tasks; None if there is none. A file that is damaged has none."""
        points = sorted((p for p in self._read() if p.data == data[: p.tasks]), key=lambda point: point.tasks)
        return LearningCurve(tuple(points)) if points else None

    def missing(self, data: Data) -> list[int]:
        """Numbers of tasks whose points are still to be computed."""
        curve = self.curve(data)
        known = {point.tasks for point in curve.points} if curve else set()
        return [size for size in sorted({*SIZES, len(data)}) if SIZES[0] <= size <= len(data) and size not in known]

    def add(self, point: LearningPoint, data: Data) -> None:
        """Keep one more; points that are not of these data any more are dropped."""
        curve = self.curve(data)
        points = [known for known in (curve.points if curve else ()) if known.tasks != point.tasks]
        with explained(self.file):
            values = f'{{"points":{self._POINTS.dump_json([*points, point]).decode()}}}'
            write_durably(self.file, sealed(values, {}, "")[0])

    def _read(self) -> list[LearningPoint]:
        try:
            lines = list(verified(read_regular(self.file), self.file, "it will be computed again"))
            return self._POINTS.validate_python(lines[0].values["points"])
        except (OSError, DamagedError, LookupError, ValidationError):
            return []


def _half_width(values: Array) -> float:
    """Half of the 95 % interval of a mean, by Student's t."""
    if len(values) < 3:
        return math.nan
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


def _percent(share: float) -> str:
    number = round(100 * share)
    return f"{'−' if number < 0 else '+' if number else ''}{abs(number)}\u00a0%"

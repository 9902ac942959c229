"""What a model answers, and what it is asked with: forecasts, latents, and rows of numbers by name or by place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.types import Array

if TYPE_CHECKING:
    from pandas import DataFrame

    from distpaml.model.posterior import Latents


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What the model expects, in the units of the data; row 0 is the start."""

    mean: Array  # [T + 1, D]
    deviation: Array  # [T + 1, D], one standard deviation
    states: tuple[str, ...]
    """Names of the D columns."""
    dt: float
    """Seconds between two rows."""

    def to_frame(self) -> "DataFrame":
        """A row per time: every state, and its standard deviation as `NAME_sd`."""
        from pandas import DataFrame, Index

        columns = {name: self.mean[:, d] for d, name in enumerate(self.states)}
        columns |= {f"{name}_sd": self.deviation[:, d] for d, name in enumerate(self.states)}
        return DataFrame(columns, index=Index(self.dt * np.arange(len(self.mean)), name="time"))

    def __repr__(self) -> str:
        steps = len(self.mean) - 1
        ends = ", ".join(
            f"{name} {mean:.4g} ± {deviation:.2g}"
            for name, mean, deviation in zip(self.states, self.mean[-1], self.deviation[-1], strict=True)
        )
        return f"<Forecast of {steps} step{'s' * (steps != 1)}, {steps * self.dt:g} s; at the end {ends}>"


@dataclass(frozen=True, eq=False, repr=False)
class Inferred:
    """q(h) of one task: what is known about its latent."""

    mean: Array  # [Q]
    variance: Array  # [Q]

    def __repr__(self) -> str:
        pairs = zip(self.mean, np.sqrt(self.variance), strict=True)
        return f"<Inferred h = ({', '.join(f'{mean:.3g} ± {deviation:.2g}' for mean, deviation in pairs)})>"


def embeddings_table(latents: "Latents", tasks: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """A row per task: what `tasks` says of it, then means h1, h2, … and standard deviations h1_sd, h2_sd, …"""
    from pandas import DataFrame, concat

    means, deviations = latents.mean.numpy(), latents.variance.sqrt().numpy()
    size = range(means.shape[1])
    columns = {f"h{q + 1}": means[:, q] for q in size} | {f"h{q + 1}_sd": deviations[:, q] for q in size}
    return concat([DataFrame(tasks), DataFrame(columns)], axis=1).set_index("task")


def rows_of(values: Any, names: Sequence[str], what: str) -> Array:
    """Rows [T, len(names)] of a mapping or data frame of columns, of rows, or of the values of the only column."""
    if names and (isinstance(values, Mapping) or hasattr(values, "columns")):
        columns = [_numbers(values[name], what, names) for name in _all_named(values, names, what)]
        if len({column.shape for column in columns}) > 1:
            raise UserError(f"{what} should have columns of one length.")
        rows = np.stack(columns, axis=-1)
    else:
        rows = _numbers(values, what, names)
        rows = rows[:, None] if rows.ndim == 1 and len(names) == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != len(names) or not len(rows):
        raise UserError(f"{what} should be {_wanted(what, names)}.")
    return rows


def values_of(values: Any, names: Sequence[str], what: str) -> Array:
    """One number for each of the names, by name or in their order."""
    if isinstance(values, Mapping):
        values = [values[name] for name in _all_named(values, names, what)]
    row = _numbers(values, what, names)
    if row.shape != (len(names),):
        raise UserError(f"{what} should be {_wanted(what, names)}.")
    return row


def _all_named(values: Any, names: Sequence[str], what: str) -> Sequence[str]:
    for name in names:
        if name not in values:
            raise UserError(f"{what} should have {name}{nearest(name, map(str, values), 'there are')}.")
    return names


def _numbers(values: Any, what: str, names: Sequence[str]) -> Array:
    try:
        numbers: Array = np.ma.asarray(values, dtype=float).filled(np.nan)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        raise UserError(f"{what} should be {_wanted(what, names)}.")
    return numbers


def _wanted(what: str, names: Sequence[str]) -> str:
    rows = "rows of " if what == "controls" else ""
    return f"{rows}{len(names)} finite number{'s' if len(names) > 1 else ''}: {', '.join(names)}"

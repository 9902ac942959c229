"""The keys of `domain.signal`: how a system is excited."""

import csv
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from distpaml.config.section import Interval, List, Moderate, Positive, Section
from distpaml.config.yaml_text import LARGEST_FILE
from distpaml.domains.signals import Signal
from distpaml.durable_io import read_regular

MOST_ROWS = 10_000


def _columns(value: Any) -> Any:
    """The columns of a csv file, by the names in its first line."""
    if not isinstance(value, str):
        return value
    name = Path(value).name
    try:
        text = read_regular(Path(value), LARGEST_FILE).decode("utf-8-sig")
        rows = [row for row in csv.reader(StringIO(text, newline="")) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"the file {name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not 2 <= len(rows) <= MOST_ROWS + 1:
        raise ValueError(f"{name} should have a line of names and 1 to {MOST_ROWS} lines of numbers")
    names = [column.strip() for column in rows[0]]
    if len(set(names)) < len(names) or not all(names):
        raise ValueError(f"{name} should begin with a line of names that differ")
    columns: dict[str, list[float]] = {column: [] for column in names}
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise ValueError(f"{name} has {len(row)} values in line {line}, but {len(names)} names")
        for column, text in zip(names, row, strict=True):
            columns[column].append(_number(text, f"{name}, line {line}"))
    return columns


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise ValueError(f"{where} has {text!r}, which is no number")
    return number


class SignalConfig(Section):
    """One signal for all tasks of a seed; several controls have one each, of one `shape` but with other values."""

    recorded: Annotated[dict[str, List[float]], BeforeValidator(_columns)] = Field(default_factory=dict)
    """A csv file with a column per control and a row per step."""
    shape: Literal["ramp", "chirp", "prbs", "multisine", "recorded"] = Field(
        default_factory=lambda data: "recorded" if data.get("recorded") else "ramp"
    )
    """`ramp`: the paper's; `chirp`: a rising tone; `prbs`: a random binary sequence; `multisine`; `recorded`."""
    limits: dict[str, Interval] = Field(default_factory=dict)
    """Intervals of single controls; what the domain or the actuator says unless given."""
    noise: Annotated[float, Field(ge=0)] | None = None
    """Standard deviation of the noise, in the unit of the control; 1 for the paper's domains, a tenth of the half range
    for the ramps of others, none for the other shapes."""
    frequencies: Interval | None = None
    """`chirp`, `multisine`: Hz, from and to; one and ten periods within a trajectory unless given."""
    hold: Positive = 5
    """`prbs`: steps for which a value is kept at least."""
    sines: Moderate = 8
    """`multisine`: how many."""

    @field_validator("shape")
    @classmethod
    def _recorded_if_there(cls, shape: str, info: ValidationInfo) -> str:
        if (shape == "recorded") != bool(info.data.get("recorded", shape == "recorded")):
            raise ValueError("should be 'recorded' where domain.signal.recorded is given, and only there")
        return shape

    @field_validator("frequencies")
    @classmethod
    def _positive(cls, band: tuple[float, float] | None) -> tuple[float, float] | None:
        if band is not None and band[0] < 0:
            raise ValueError("should not be below 0 Hz")
        return band

    def signal(self) -> Signal:
        """As the simulator reads it."""
        return Signal(
            self.shape, self.limits, self.noise, self.frequencies, self.hold, self.sines, self.recorded
        )  # fmt: skip

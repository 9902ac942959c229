"""What happened to a sweep's trials: `events.jsonl`, one line per event, appended and synced by the driver."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from distpaml.durable_io import append_durably
from distpaml.errors import UserError

Event = Literal[
    "sweep started",
    "sweep finished",
    "sweep stopped",
    "trial finished",
    "trial failed",
    "trial retried",
    "trial stopped",
]
EMPTY = {"event": None, "trial": None, "message": ""}
"""What every event has, as text or null."""


class Journal:
    """The events of one sweep."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, event: Event, trial: str | None = None, message: str = "") -> None:
        line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, "trial": trial}
        try:
            append_durably(self.path, json.dumps(line | {"message": message}).encode() + b"\n")
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error.strerror or error}.") from error

    def last(self) -> dict[str, dict[str, Any]]:
        """The last event of every trial, by trial."""
        return {event["trial"]: event for event in self if event["trial"]}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every line that is an event: one may be cut off, where the driver was killed, or be something else."""
        try:
            lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        except OSError as error:
            raise UserError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        for line in lines:
            try:
                event = EMPTY | json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if all(event[key] is None or isinstance(event[key], str) for key in EMPTY):
                yield event

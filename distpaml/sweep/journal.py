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
        return {event["trial"]: event for event in self if event.get("trial")}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # cut off when the driver was killed

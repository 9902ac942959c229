"""From directories and files to runs. Damaged ones are left out and listed with the reason."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distpaml.catalogue import planned_rounds
from distpaml.config.yaml_text import read
from distpaml.durable_io import read_regular
from distpaml.errors import UserError
from distpaml.records import read_records, round_folders
from distpaml.report.archive import SUFFIX, read_archive
from distpaml.rounds import Record

Tree = dict[str, Any]
UNIMPORTANT = ("name", "method", "seed", "out", "runtime")
"""Keys that do not define a variant of an experiment."""
DEEPEST = 4
"""How deep to look for runs below a given folder."""


@dataclass(frozen=True, eq=False)
class Run:
    """One readable run with at least one finished round."""

    path: Path
    """Its directory; of a run from a file, the file and the run's name: it has no arrays and no model."""
    config: Tree
    """As written, not validated: a report must not need the user's modules."""
    records: list[Record]
    sweep: "Sweep | None" = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def experiment(self) -> str:
        return str(self.config["name"])

    @property
    def method(self) -> str:
        return str(self.config["method"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def complete(self) -> bool:
        return len(self.records) == planned_rounds(self.method, self.config["rounds"]) + 1

    @property
    def added(self) -> list[int]:
        """Number of added tasks after each round."""
        return [record.tasks - self.records[0].tasks for record in self.records]


@dataclass(frozen=True, eq=False)
class Sweep:
    """The directory of a sweep: its config and its events."""

    path: Path
    asked: Tree
    events: list[Tree]


@dataclass(frozen=True)
class Problem:
    """A directory that the report leaves out, wholly or in part, and why."""

    path: str
    said: str


@dataclass(frozen=True, eq=False)
class Collection:
    runs: list[Run] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    waiting: list[Path] = field(default_factory=list)
    """Runs without a finished round."""
    paths: list[Path] = field(default_factory=list)


def collect(paths: Sequence[Path]) -> Collection:
    """All runs in sweeps, run directories, files of runs, and folders of these; each once, in a stable order.

    A folder's files count if it has no directory of a run: a table that was written into a sweep repeats its runs.
    """
    found = Collection(paths=[Path(path) for path in paths])
    seen: set[Path] = set()
    for path in found.paths:
        if not path.exists():
            found.problems.append(Problem(str(path), "There is no such directory."))
        places = list(_directories(path, found)) if path.is_dir() else [(path, None)] if path.exists() else []
        for place, sweep in places or [(file, None) for file in sorted(path.glob(f"*{SUFFIX}"))]:
            resolved = place.resolve()
            if resolved not in seen:
                seen.add(resolved)
                _add_file(place, found) if place.is_file() else _add(place, sweep, found)
    return found


def _directories(path: Path, found: Collection, depth: int = 0) -> Iterator[tuple[Path, Sweep | None]]:
    """Run directories at or below `path`, with their sweep."""
    # os.path says no where a folder must not be read, and then _folders says why
    if os.path.exists(path / "sweep.yaml") or os.path.isdir(path / "trials"):  # it has a lock, as a run has
        sweep = _sweep(path, found)
        trials = path / "trials"
        for folder in _folders(trials, found) if trials.is_dir() else ():
            yield folder, sweep
    elif _is_run(path):
        yield path, None
    elif depth < DEEPEST:
        for folder in _folders(path, found):
            yield from _directories(folder, found, depth + 1)


def _folders(path: Path, found: Collection) -> list[Path]:
    try:
        return sorted(Path(entry) for entry in os.scandir(path) if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        found.problems.append(Problem(str(path), f"It cannot be read: {error.strerror}."))
        return []


def _is_run(path: Path) -> bool:
    return any(os.path.exists(path / name) for name in ("records.jsonl", "config.yaml", "lock"))


def _add(folder: Path, sweep: Sweep | None, found: Collection) -> None:
    try:
        if not (folder / "records.jsonl").exists():
            found.waiting.append(folder)
            return
        last = max(round_folders(folder), default=0)  # before its lines, which may become more
        config = _checked_config(read(folder / "config.yaml"), folder / "config.yaml")
        run = Run(folder, config, _checked(read_records(folder), folder / "records.jsonl"), sweep)
        if last > len(run.records):
            found.problems.append(
                Problem(str(folder), f"Its records have lost their end: round {last} is there, but has no line.")
            )
        if not run.records:
            found.waiting.append(folder)
            return
        if not _last_line_is_whole(folder / "records.jsonl"):
            found.problems.append(Problem(str(folder), "Its last line is cut off; only the finished rounds are used."))
        found.runs.append(run)
    except Exception as error:  # one damaged run must not cost the report of the others
        found.problems.append(Problem(str(folder), f"It is left out. {_sentence(error)}"))


def _add_file(file: Path, found: Collection) -> None:
    try:
        found.runs.extend(
            [
                Run(file / name, _checked_config(config, file), _checked(records, file))
                for name, config, records in read_archive(file)
            ]
        )
    except Exception as error:  # one damaged file must not cost the report of the others
        found.problems.append(Problem(str(file), f"It is left out. {_sentence(error)}"))


def _checked_config(config: Tree, path: Path) -> Tree:
    kinds = {"name": str, "method": str, "seed": int, "rounds": int, "initial": int, "domain": dict, "descriptor": dict}
    for key, kind in kinds.items():
        if not isinstance(config.get(key), kind) or isinstance(config[key], bool):
            raise UserError(f"{path} is not the config of a run: {key} is {config.get(key)!r}.")
    box = config["domain"].get("box")
    intervals = list(box.values()) if isinstance(box, dict) else [None]
    for interval in intervals:
        if not (
            isinstance(interval, list) and len(interval) == 2 and all(isinstance(x, int | float) for x in interval)
        ):
            raise UserError(f"{path} is not the config of a run: domain.box is {box!r}.")
    return config


def _checked(records: list[Record], path: Path) -> list[Record]:
    for number, record in enumerate(records):
        if record.round != number:
            raise UserError(f"{path} is damaged in line {number + 1}: it is of round {record.round}.")
    return records


def _last_line_is_whole(path: Path) -> bool:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read(1) in (b"\n", b"")


def _sweep(path: Path, found: Collection) -> Sweep:
    asked: Tree = {}
    if (path / "sweep.yaml").exists():
        try:
            asked = read(path / "sweep.yaml")
        except UserError as error:
            found.problems.append(Problem(str(path), str(error)))
    sweep = Sweep(path, asked, _events(path / "events.jsonl", found))
    found.sweeps.append(sweep)
    return sweep


def _events(path: Path, found: Collection) -> list[Tree]:
    try:
        lines = read_regular(path).decode(errors="replace").splitlines() if path.exists() else []
    except OSError as error:
        found.problems.append(Problem(str(path), f"It cannot be read: {error.strerror}."))
        return []
    events, bad = [], 0
    for line in lines:
        try:
            event = json.loads(line)
            events.append({key: event.get(key) for key in ("time", "event", "trial", "message")})
        except (ValueError, AttributeError, RecursionError):
            bad += 1
    if bad:
        found.problems.append(Problem(str(path), f"{bad} of its lines cannot be read."))
    return events


def _sentence(error: Exception) -> str:
    return (
        str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    )

"""What a run keeps on disk, and how it resumes from there.

    config.yaml           the experiment, every key
    records.jsonl         one line per finished round
    round-07/arrays.npz   the tasks that the round added and their data, the embeddings, the scores of every test task
    round-07/model.safetensors   the model; only the newest round keeps its own
    lock                  held while a run writes here
    damaged-1/            what a repair set aside

A round is finished once its line in records.jsonl is complete, and its files are safe on disk before the line is
written. So a run that is killed at any moment resumes from the last finished round, with the same results. The line
holds checksums of itself and of its files (`distpaml.checksums`). A run that finds one broken stops before it writes
anything; `distpaml.runtime.repair` goes back to the last round of which everything is whole.
"""

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import ValidationError

from distpaml.checksums import DamagedError, Line, checksum, read_verified, sealed, verified
from distpaml.command_line import counted
from distpaml.config import ExperimentConfig
from distpaml.data import Dataset
from distpaml.durable_io import append_durably, cut, locked, read_regular, sync_folder, write_durably
from distpaml.errors import UserError
from distpaml.extension import as_begun, check_same, extended
from distpaml.failures import FILE
from distpaml.model.meta_model import MetaModel
from distpaml.model.storage import load_model, serialised
from distpaml.rounds import DATA, Record, Round, State

CONFIG, LINES = "config.yaml", "records.jsonl"


class RunDirectory:
    """The directory of one run, locked while it is open: `with RunDirectory(path, config) as run: …`.

    Waits up to `patience` seconds for another process that writes into it.
    """

    def __init__(self, path: Path, config: ExperimentConfig, patience: float = 0.0) -> None:
        self.path, self.config, self.patience = path, config, patience
        self.records: list[Record] = []
        self._digest = ""  # of the last line

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(locked(self.path, "Another run", self.patience))
            self._recover()
            self._extend()
            self._held = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def state(self) -> State | None:
        """What the next round goes on from; None before the first."""
        if not self.records:
            return None
        last = self.records[-1].round
        return State(read_data(self.path, last), read_model(self.path, last), len(self.records))

    def add(self, round: Round) -> None:
        """Keep a finished round; once this returns, it survives whatever happens."""
        number = round.record.round
        buffer = BytesIO()
        np.savez(buffer, allow_pickle=False, **round.arrays())
        files = {arrays_file(number): buffer.getvalue(), model_file(number): serialised(round.model)}
        folder = self.path / _folder(number)
        with writing(folder):
            if number == 0:
                write_durably(self._config, self.config.to_yaml().encode())
                sync_folder(self.path)
            shutil.rmtree(folder, ignore_errors=True)  # left by an interrupted attempt
            folder.mkdir()
            for name, contents in files.items():
                write_durably(self.path / name, contents)
            sync_folder(folder)
            sync_folder(self.path)
            if number == 0:
                files = {CONFIG: self._config.read_bytes(), **files}
        checksums = {name: checksum(contents) for name, contents in files.items()}
        line, digest = sealed(round.record.model_dump_json(), checksums, self._digest)
        with writing(self._lines):
            append_durably(self._lines, line)
        self.records.append(round.record)
        self._digest = digest
        with writing(self.path):
            for model in self.path.glob("round-*/model.safetensors"):
                if model.parent != folder:
                    model.unlink()

    @property
    def _config(self) -> Path:
        return self.path / CONFIG

    @property
    def _lines(self) -> Path:
        return self.path / LINES

    def _recover(self) -> None:
        """Read the finished rounds, and drop a line that was cut off at the end of the file."""
        contents = read(self._lines) if self._lines.exists() else b""
        lines = list(verified(contents, self._lines, _remedy(self.path)))
        self._check(lines)
        for line in lines:
            for name in line.files:
                if line is lines[-1] or not name.endswith(".safetensors"):
                    verify(self.path, line, name)
        self.records = [record_of(line, self._lines) for line in lines]
        self._digest = lines[-1].digest if lines else ""
        whole = sum(line.size for line in lines)
        if whole < len(contents):
            with writing(self._lines):
                cut(self._lines, whole)

    def _check(self, lines: Sequence[Line]) -> None:
        """Nothing but this experiment may be here. Until its first round is finished, not even its config is."""
        if lines:
            verify(self.path, lines[0], CONFIG)
        if (last := max(round_folders(self.path), default=0)) > len(lines):  # a killed run leaves the next one
            found = f"{self._lines} has {counted(len(lines), 'round')}, but {_folder(last)} is there"
            raise DamagedError(f"{found}; {_remedy(self.path)}.")
        if self._config.exists():
            check_same(read_config(self.path), self.config, self.path)
        elif others := [file.name for file in self.path.iterdir() if file.name not in ("lock", FILE)]:
            found = f"it has {min(others)} but no config.yaml"
            raise UserError(f"{self.path} is not the directory of a run: {found}; choose another directory.")

    def _extend(self) -> None:
        """Write down that there will be more rounds than the run was begun with."""
        if self.records and read_config(self.path).rounds < self.config.rounds:
            with writing(self._config):
                text = read(self._config).decode()
                write_durably(self._config, extended(text, self.config.rounds).encode())
                sync_folder(self.path)


def read_records(path: Path) -> list[Record]:
    """The finished rounds of the run in `path`, which may still be running; changes nothing."""
    lines = _read_lines(path)
    if lines:
        verify(path, lines[0], CONFIG)
    return [record_of(line, path / LINES) for line in lines]


def read_arrays(path: Path, round: int) -> dict[str, Any]:
    """The arrays of one finished round of the run in `path`."""
    return arrays_of(path, _read_line(path, round), round)


def arrays_of(path: Path, line: Line, round: int) -> dict[str, Any]:
    """The arrays of the round with this line."""
    with np.load(BytesIO(verify(path, line, arrays_file(round))), allow_pickle=False) as arrays:
        return dict(arrays)


def read_data(path: Path, round: int) -> Dataset:
    """What the model of a finished round was fitted to: the tasks of this round and of all before it."""
    return Dataset.concatenate([data_of(read_arrays(path, number)) for number in range(round + 1)])


def data_of(arrays: Mapping[str, Any]) -> Dataset:
    """The new tasks of the round with these arrays."""
    return Dataset(**{name: arrays[name] for name in DATA})


def read_model(path: Path, round: int) -> MetaModel:
    """The model of the newest finished round of the run in `path`; the others do not keep theirs."""
    verify(path, _read_line(path, round), model_file(round))
    return load_model(path / model_file(round))


def read_config(path: Path) -> ExperimentConfig:
    """The experiment of the run in `path`."""
    try:
        return ExperimentConfig.from_yaml(path / CONFIG)
    except UserError as error:
        raise DamagedError(f"{str(error).rstrip('.')}; {config_remedy(path)}.") from error


def arrays_file(round: int) -> str:
    return f"{_folder(round)}/arrays.npz"


def model_file(round: int) -> str:
    """Only that of the newest round is kept."""
    return f"{_folder(round)}/model.safetensors"


def _folder(round: int) -> str:
    return f"round-{round:02d}"


def round_folders(path: Path) -> dict[int, Path]:
    """By their numbers."""
    found = ((re.fullmatch(r"round-(\d{2,9})", folder.name), folder) for folder in path.glob("round-*"))
    return {int(name[1]): folder for name, folder in found if name}


def _remedy(path: Path) -> str:
    command = f"python -m distpaml.run --repair --out {shlex.quote(str(path))}"
    return f"restore it from a copy, or `{command}` goes back to the last whole round"


def config_remedy(path: Path) -> str:
    """What can be done about a bad config, which no other file can replace."""
    return (
        "restore it from a copy, or repeat the command that began the run, experiment and overrides, with --repair; "
        f"failing both, move {path} away to begin anew"
    )


def verify(path: Path, line: Line, name: str) -> bytes:
    """The contents of a file of the line, if they are those that were written."""
    if name == CONFIG:
        return _verified_config(path, line.files[name])
    return read_verified(path / name, line.files[name], _remedy(path))


def _verified_config(path: Path, digest: str) -> bytes:
    """The config, which may have been extended since its checksum was taken."""
    file = path / CONFIG
    if file.is_file():
        contents = read(file)
        if checksum(as_begun(contents.decode(errors="replace")).encode()) == digest:
            return contents
    return read_verified(file, digest, config_remedy(path))


def _read_lines(path: Path) -> list[Line]:
    return list(verified(read(path / LINES), path / LINES, _remedy(path)))


def _read_line(path: Path, round: int) -> Line:
    lines = _read_lines(path)
    if round >= len(lines):
        raise UserError(f"{path / LINES} has no round {round}; its last one is {len(lines) - 1}.")
    return lines[round]


def record_of(line: Line, file: Path) -> Record:
    """What a line of `file` says of its round."""
    try:
        return Record.model_validate(line.values)
    except ValidationError as error:
        raise UserError(
            f"{file} was written by another version of distpaml: {error.errors()[0]['msg']}; choose another directory."
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """An error of the disk as a sentence."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror or error}; every finished round is kept, and the run goes on "
            "from there when it is started again."
        ) from error


def read(path: Path) -> bytes:
    """The contents of a file, or a sentence."""
    try:
        return read_regular(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error

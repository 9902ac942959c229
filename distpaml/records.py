"""What a run keeps on disk, and how it resumes from there.

    config.yaml           the experiment, every key
    records.jsonl         one line per finished round
    round-07/arrays.npz   the tasks that the round added and their data, the embeddings, the scores of every test task
    round-07/model.safetensors   the model; only the newest round keeps its own
    lock                  held while a run writes here

A round is finished once its line in records.jsonl is complete, and its files are safe on disk before the line is
written. So a run that is killed at any moment resumes from the last finished round, with the same results. The line
holds checksums of itself and of its files (`distpaml.checksums`). A run that finds one broken stops before it writes
anything; with `repair` it goes back to the last round of which everything is whole.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import ValidationError

from distpaml.checksums import DamagedError, Line, checksum, read_verified, sealed, verified
from distpaml.config import ExperimentConfig
from distpaml.data import Dataset
from distpaml.durable_io import append_durably, cut, locked, sync_folder, write_durably
from distpaml.errors import UserError
from distpaml.extension import as_begun, extended
from distpaml.failures import FILE
from distpaml.model.meta_model import MetaModel
from distpaml.model.storage import load_model, serialised
from distpaml.rounds import DATA, Record, Round, State

FREE = ("out", "runtime")
"""Keys that may differ when a run is continued: they change no result by more than rounding."""


class RunDirectory:
    """The directory of one run, locked while it is open: `with RunDirectory(path, config) as run: …`.

    Waits up to `patience` seconds for another process that writes into it.
    """

    def __init__(self, path: Path, config: ExperimentConfig, patience: float = 0.0, repair: bool = False) -> None:
        self.path, self.config, self.patience, self.repair = path, config, patience, repair
        self.records: list[Record] = []
        self._digest = ""  # of the last line

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(locked(self.path, "Another run", self.patience))
            if self.repair:
                self._go_back()
            self._check()
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
        files = {_arrays_file(number): buffer.getvalue(), _model_file(number): serialised(round.model)}
        folder = self.path / _folder(number)
        with _writing(folder):
            if not self._config.exists():
                write_durably(self._config, self.config.to_yaml().encode())
                sync_folder(self.path)
            shutil.rmtree(folder, ignore_errors=True)  # left by an interrupted attempt
            folder.mkdir()
            for name, contents in files.items():
                write_durably(self.path / name, contents)
            sync_folder(folder)
            sync_folder(self.path)
            if number == 0:
                files = {"config.yaml": self._config.read_bytes(), **files}
        checksums = {name: checksum(contents) for name, contents in files.items()}
        line, digest = sealed(round.record.model_dump_json(), checksums, self._digest)
        with _writing(self._lines):
            append_durably(self._lines, line)
        self.records.append(round.record)
        self._digest = digest
        with _writing(self.path):
            for model in self.path.glob("round-*/model.safetensors"):
                if model.parent != folder:
                    model.unlink()

    @property
    def _config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def _lines(self) -> Path:
        return self.path / "records.jsonl"

    def _check(self) -> None:
        """Nothing but this experiment may be here. Until its first round is finished, not even its config is."""
        if self._config.exists():
            check_same(ExperimentConfig.from_yaml(self._config), self.config, self.path)
        elif others := [file.name for file in self.path.iterdir() if file.name not in ("lock", FILE)]:
            raise UserError(f"{self.path} is not the directory of a run: it has {min(others)} but no config.yaml.")

    def _extend(self) -> None:
        """Write down that there will be more rounds than the run was begun with."""
        if not self._config.exists():
            return
        text = _read(self._config).decode()
        if ExperimentConfig.from_yaml(self._config).rounds < self.config.rounds:
            with _writing(self._config):
                write_durably(self._config, extended(text, self.config.rounds).encode())
                sync_folder(self.path)

    def _recover(self) -> None:
        """Read the finished rounds, and drop a line that was cut off at the end of the file."""
        contents = _read(self._lines) if self._lines.exists() else b""
        lines = list(verified(contents, self._lines, _remedy(self.path)))
        for line in lines:
            for name in line.files:
                if line is lines[-1] or not name.endswith(".safetensors"):
                    _verify(self.path, line, name)
        self.records = [_record(line, self._lines) for line in lines]
        self._digest = lines[-1].digest if lines else ""
        whole = sum(line.size for line in lines)
        if whole < len(contents):
            with _writing(self._lines):
                cut(self._lines, whole)

    def _go_back(self) -> None:
        """Drop every round after the last whole one: with its line, its arrays and all before it, and its model."""
        contents = _read(self._lines) if self._lines.exists() else b""
        rounds = read = whole = kept = 0
        with suppress(DamagedError):
            for line in verified(contents, self._lines, ""):
                for name in line.files:
                    if name != _model_file(rounds):
                        _verify(self.path, line, name)
                    if name == "config.yaml":
                        self._check()  # another experiment is not repaired but refused
                rounds, read = rounds + 1, read + line.size
                with suppress(DamagedError):
                    _verify(self.path, line, _model_file(rounds - 1))
                    whole, kept = rounds, read
        if whole == contents.count(b"\n"):
            return
        with _writing(self.path):
            for folder in self.path.glob("round-*"):
                if int(folder.name.removeprefix("round-")) >= whole:
                    shutil.rmtree(folder)
            if whole:
                write_durably(self._lines, contents[:kept])
            else:
                self._config.unlink(missing_ok=True)
                self._lines.unlink()
            sync_folder(self.path)


def read_records(path: Path) -> list[Record]:
    """The finished rounds of the run in `path`, which may still be running; changes nothing."""
    file = path / "records.jsonl"
    lines = list(verified(_read(file), file, _remedy(path)))
    if lines:
        _verify(path, lines[0], "config.yaml")
    return [_record(line, file) for line in lines]


def read_arrays(path: Path, round: int) -> dict[str, Any]:
    """The arrays of one finished round of the run in `path`."""
    contents = _verify(path, _line(path, round), _arrays_file(round))
    with np.load(BytesIO(contents), allow_pickle=False) as arrays:
        return dict(arrays)


def read_data(path: Path, round: int) -> Dataset:
    """What the model of a finished round was fitted to: the tasks of this round and of all before it."""
    parts = [read_arrays(path, number) for number in range(round + 1)]
    return Dataset.concatenate([Dataset(**{name: arrays[name] for name in DATA}) for arrays in parts])


def read_model(path: Path, round: int) -> MetaModel:
    """The model of the newest finished round of the run in `path`; the others do not keep theirs."""
    _verify(path, _line(path, round), _model_file(round))
    return load_model(path / _model_file(round))


def model_file(path: Path, round: int) -> Path:
    """Where the run in `path` keeps the model of its newest round."""
    return path / _model_file(round)


def _folder(round: int) -> str:
    return f"round-{round:02d}"


def _arrays_file(round: int) -> str:
    return f"{_folder(round)}/arrays.npz"


def _model_file(round: int) -> str:
    return f"{_folder(round)}/model.safetensors"


def _remedy(path: Path) -> str:
    return f"restore it from a copy, or add --repair to distpaml.run --out {path} to go back to the last whole round"


def _verify(path: Path, line: Line, name: str) -> bytes:
    if name == "config.yaml":
        return _verified_config(path, line.files[name])
    return read_verified(path / name, line.files[name], _remedy(path))


def _verified_config(path: Path, digest: str) -> bytes:
    """The config, which may have been extended since its checksum was taken."""
    contents = _read(path / "config.yaml")
    begun = as_begun(contents.decode(errors="replace")).encode()
    if begun != contents and checksum(begun) == digest:
        return contents
    return read_verified(path / "config.yaml", digest, _remedy(path))


def _line(path: Path, round: int) -> Line:
    file = path / "records.jsonl"
    lines = list(verified(_read(file), file, _remedy(path)))
    if round >= len(lines):
        raise UserError(f"{file} has no round {round}; its last one is {len(lines) - 1}.")
    return lines[round]


def _record(line: Line, file: Path) -> Record:
    try:
        return Record.model_validate(line.values)
    except ValidationError as error:
        raise UserError(
            f"{file} was written by another version of distpaml: {error.errors()[0]['msg']}; choose another directory."
        ) from error


def check_same(kept: ExperimentConfig, now: ExperimentConfig, path: Path) -> None:
    """Raise if `now` is another experiment than the one in `path`; more rounds are the same experiment, continued."""
    if now.rounds < kept.rounds:
        dropped = (
            f"rounds {now.rounds + 1} to {kept.rounds}" if kept.rounds > now.rounds + 1 else f"round {kept.rounds}"
        )
        raise UserError(
            f"{path} holds {kept.rounds} rounds, and rounds={now.rounds} would drop {dropped}; choose another "
            f"directory, or rounds={kept.rounds} or more."
        )
    now = now.model_copy(update={"rounds": kept.rounds})
    before, after = (dict(_leaves(config.model_dump())) for config in (kept, now))
    for key in {**before, **after}:
        if before.get(key) != after.get(key) and key.partition(".")[0] not in FREE:
            raise UserError(
                f"{path} holds another experiment: {key} is {before.get(key)!r} there and {after.get(key)!r} here; "
                "choose another directory or the same config."
            )


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and key not in ("box", "superfluous"):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror or error}; every finished round is kept, "
            "and the same command goes on from there."
        ) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error

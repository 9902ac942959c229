"""What a run leaves on disk, and how it goes on from there.

    config.yaml           the experiment, every key
    records.jsonl         one line per finished round
    round-07/arrays.npz   the tasks that the round added and their data, the embeddings, the scores of every test task
    round-07/model.safetensors   the model; only the newest round keeps its own
    lock                  held while a run writes here

A round is finished when its line in records.jsonl is complete, and its files are safe on disk before the line is
written. So a run that is killed at any moment goes on from the last finished round, with the same results.
"""

import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from pydantic import ValidationError

from distpaml.config import ExperimentConfig
from distpaml.data import Dataset
from distpaml.durable_io import append_durably, locked, sync_folder, write_durably
from distpaml.errors import UserError
from distpaml.model.meta_model import MetaModel
from distpaml.model.storage import load_model, save_model
from distpaml.rounds import Record, Round, State

PRIOR_SAMPLES = 8
DATA = ("inputs", "targets", "counts", "descriptors")
FREE = ("out", "runtime")
"""Keys that may differ when a run is continued: they change no result by more than rounding."""


class RunDirectory:
    """The directory of one run, locked while it is open: `with RunDirectory(path, config) as run: …`.

    Another process that writes into it is waited for, `patience` seconds.
    """

    def __init__(self, path: Path, config: ExperimentConfig, patience: float = 0.0) -> None:
        self.path, self.config, self.patience = path, config, patience
        self.records: list[Record] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(locked(self.path, "Another run", self.patience))
            self._check()
            self.records = self._recover()
            self._held = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def state(self) -> State | None:
        """What the next round goes on from; None before the first."""
        if not self.records:
            return None
        parts = [read_arrays(self.path, record.round) for record in self.records]
        data = Dataset.concatenate([_dataset(part, self.folder(i)) for i, part in enumerate(parts)])
        return State(data, load_model(self.folder(self.records[-1].round) / "model.safetensors"), len(self.records))

    def add(self, round: Round) -> None:
        """Keep a finished round; when this returns it will survive whatever comes."""
        folder = self.folder(round.record.round)
        with _writing(folder):
            if not self._config.exists():
                write_durably(self._config, self.config.to_yaml().encode())
                sync_folder(self.path)
            shutil.rmtree(folder, ignore_errors=True)  # what an interrupted attempt left
            folder.mkdir()
            buffer = BytesIO()
            np.savez(buffer, allow_pickle=False, **_arrays(round))
            write_durably(folder / "arrays.npz", buffer.getvalue())
            save_model(round.model, folder / "model.safetensors")
            sync_folder(folder)
            sync_folder(self.path)
        with _writing(self._lines):
            append_durably(self._lines, round.record.model_dump_json().encode() + b"\n")
        self.records.append(round.record)
        with _writing(self.path):
            for model in self.path.glob("round-*/model.safetensors"):
                if model.parent != folder:
                    model.unlink()

    def folder(self, round: int) -> Path:
        return self.path / f"round-{round:02d}"

    @property
    def _config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def _lines(self) -> Path:
        return self.path / "records.jsonl"

    def _check(self) -> None:
        """Nothing but this experiment may be here. Until its first round is finished, its config is not either."""
        if self._config.exists():
            check_same(ExperimentConfig.from_yaml(self._config), self.config, self.path)
        elif others := [file.name for file in self.path.iterdir() if file.name not in ("lock", ".config.yaml")]:
            raise UserError(f"{self.path} is not the directory of a run: it has {min(others)} but no config.yaml.")

    def _recover(self) -> list[Record]:
        """The finished rounds; a line that was cut off at the end of the file is dropped."""
        records, complete = [], 0
        lines = _read(self._lines).splitlines(keepends=True) if self._lines.exists() else []
        for number, line in enumerate(lines):
            try:
                record = Record.model_validate_json(line)
                if record.round != number or not line.endswith(b"\n"):
                    raise ValueError(f"it should be round {number}, ended by a line break")
            except (ValidationError, ValueError) as error:
                if not line.endswith(b"\n"):
                    with _writing(self._lines):
                        os.truncate(self._lines, complete)
                    break
                said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
                raise UserError(f"{self._lines} is damaged in line {number + 1}: {said}.") from error
            records.append(record)
            complete += len(line)
        return records


def read_records(path: Path) -> list[Record]:
    """The finished rounds of the run in `path`, which may still be going on; nothing is changed."""
    lines = _read(path / "records.jsonl").splitlines(keepends=True)
    try:
        return [Record.model_validate_json(line) for line in lines if line.endswith(b"\n")]
    except ValidationError as error:
        raise UserError(f"{path / 'records.jsonl'} is damaged: {error.errors()[0]['msg']}.") from error


def read_arrays(path: Path, round: int) -> dict[str, Any]:
    """The arrays of one finished round of the run in `path`."""
    file = path / f"round-{round:02d}" / "arrays.npz"
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{file} is damaged: {' '.join(str(error).split())}.") from error


def _arrays(round: Round) -> dict[str, Any]:
    embeddings, evaluation = round.model.embeddings, round.evaluation
    return {
        "parameters": round.tasks.parameters,
        **{name: getattr(round.data, name) for name in DATA},
        **_image_arrays(round.model, first=round.record.round == 0),
        "embedding_mean": embeddings.mean.numpy(),
        "embedding_variance": embeddings.variance.numpy(),
        "embedding_ratio": embeddings.ratio.numpy(),
        "test_mean": evaluation.mean,
        "test_variance": evaluation.variance,
        "test_ratio": evaluation.ratio,
        **{f"test_{name}": values for name, values in vars(evaluation.scores).items()},
        **{
            f"shots{k}_{name}": values
            for k, scores in evaluation.shots.items()
            for name, values in vars(scores).items()
        },
    }


def _image_arrays(model: MetaModel, first: bool) -> dict[str, Any]:
    """Where the network puts every image, and samples from its prior; the images themselves in the first round."""
    if (vae := model.image_vae) is None:
        return {}
    with torch.no_grad():
        encoded = vae.encoded()
    arrays = {
        "image_mean": encoded.mean.numpy(),
        "image_variance": encoded.log_variance.exp().numpy(),
        "prior_samples": vae.samples(PRIOR_SAMPLES, seed=0).numpy().astype(np.float16),
        "image_labels": vae.labels.numpy(),
    }
    return arrays | ({"images": vae.images.numpy().astype(np.float16)} if first else {})


def _dataset(arrays: Mapping[str, Any], folder: Path) -> Dataset:
    try:
        return Dataset(**{name: arrays[name] for name in DATA})
    except (KeyError, ValueError) as error:
        raise UserError(f"{folder / 'arrays.npz'} is damaged: {error}.") from error


def check_same(kept: ExperimentConfig, now: ExperimentConfig, path: Path) -> None:
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
